from weakspot.report.findings import SliceImages, finding
from weakspot.web.services.slices import run_of, slice_page


def test_slice_page__sentences__are_those_of_the_report(sliced):
    record = run_of(sliced)
    found, evidence = record.published()[0]
    said = finding(1, found, evidence, record, SliceImages())
    page = slice_page(sliced, record, found)
    assert vars(page.words).items() <= vars(said).items()
    assert page.words.proof
    assert page.rule == "Samples whose “colour” is green."


def test_slice_page__confusion__counts_the_discovery_half(sliced):
    record = run_of(sliced)
    view = slice_page(sliced, record, record.published()[0][0])
    assert sum(one.inside for one in view.confusion) == view.looked_at_inside.total
    assert sum(one.outside for one in view.confusion) == view.looked_at_outside.total
    right = next(one for one in view.confusion if one.is_right)
    assert right.answer == "apple"
    assert right.inside == view.looked_at_inside.total - view.looked_at_inside.count
    assert view.half.endswith("discovery half")


def test_slice_page__of_a_slice_that_was_not_measured__has_no_sentence(sliced):
    record = run_of(sliced).model_copy(update={"evidence": ()})
    view = slice_page(sliced, record, record.slices[0])
    assert view.words.sentence == ""
    assert view.line.inside is None
