import pytest

from weakspot.app.browsing.slice_page import rule_words, slice_page
from weakspot.app.browsing.slice_records import run_of
from weakspot.core.rules import AllOfRule, AnyOfRule, ColumnRule, IdRule
from weakspot.report.findings import finding
from weakspot.report.pictures import SlicePictures


def test_slice_page__sentences__are_those_of_the_report(sliced):
    record = run_of(sliced)
    found, evidence = record.published()[0]
    said = finding(1, found, evidence, record, SlicePictures())
    words = slice_page(sliced, record, found).words
    assert (words.sentence, words.proof, words.effect) == (said.sentence, said.proof, said.effect)
    assert words.cause == list(said.cause)
    assert words.rule == "Samples whose “colour” is green."


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


@pytest.mark.parametrize(
    ("rule", "words"),
    [
        (ColumnRule(column="size", low=2.0), "Samples whose “size” is at least 2."),
        (ColumnRule(column="size", low=2.0, high=4.5), "Samples whose “size” is at least 2 and below 4.5."),
        (IdRule(sample_ids=("a",)), "Samples that were listed one by one."),
        (
            AnyOfRule(rules=(AllOfRule(rules=(ColumnRule(column="a", values=(1,)), IdRule(sample_ids=()))), IdRule(sample_ids=()))),
            "Samples whose “a” is 1. And: Samples that were listed one by one. Or: Samples that were listed one by one.",
        ),
    ],
)
def test_rule_words__of_every_kind__are_a_sentence(rule, words):
    assert rule_words(rule) == words
