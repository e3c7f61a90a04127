import pytest

from weakspot.core.evidence import Cause, CauseFinding, LabelFinding, Share
from weakspot.core.run import DecisionKind
from weakspot.report.document import build_document, render_html
from weakspot.report.findings import slice_sentences
from weakspot.web.services.overview import confirmed_slices, run_facts
from weakspot.web.services.phrase_checks import _sentences
from weakspot.web.services.slices import run_of, slice_lines, slice_table


def test_slice_table__of_a_run__is_in_the_order_of_the_report(sliced):
    table = slice_table(sliced)
    assert [(line.words, line.verdict) for line in table.slices] == [
        ("green", "confirmed"),
        ("on a shelf", "not confirmed"),
        ("far along", "same as another slice"),
    ]
    assert table.run_ids == [table.run_id]
    assert table.n_tested == 2


def test_slice_table__figures__are_those_of_the_record(sliced):
    record = run_of(sliced)
    (found, evidence), *_ = record.published()
    line = slice_table(sliced).slices[0]
    named = line.slice_id, line.title, line.class_title
    assert named == (found.slice_id, "apple: green", "apple")
    assert (line.inside.count, line.inside.total) == (evidence.failures_inside, evidence.n_inside)
    assert line.inside.interval == evidence.interval_inside
    assert (line.p_value, line.q_value) == (evidence.p_value, evidence.q_value)
    assert line.gap == evidence.headline_gap


@pytest.mark.parametrize("has_suspect_labels", [False, True])
def test_slice_table__cause__is_the_one_that_overview_page_check_and_report_name(
    sliced, has_suspect_labels
):
    record = run_of(sliced)
    (found, evidence), *_ = record.published()
    shares = dict.fromkeys(("inside", "outside"), Share.of(3, 4))
    flagged = LabelFinding(
        n_suspect=3, share=0.75, witnesses=(), is_flagged=has_suspect_labels, **shares
    )
    cause = CauseFinding(cause=Cause.RARE, sentence="Few are in training.")
    entry = evidence.model_copy(update={"cause": cause, "labels": flagged})
    record = record.model_copy(update={"evidence": (entry,)})
    named = Cause.LABELS if has_suspect_labels else Cause.RARE
    (line,) = [one for one in slice_lines(record) if one.slice_id == found.slice_id]
    said = slice_sentences(found, entry, record).cause
    assert (line.cause, line.cause_words) == (named, said[0])
    assert confirmed_slices(record)[0].words.cause == said
    assert run_facts(record).answer.findings[-1].sentence.endswith(f"; {named}")
    assert _sentences(found, entry)[-2:] == list(said)
    assert " ".join(said) in render_html(build_document(record))


def test_slice_table__of_slices_with_nearly_the_same_members__each_names_the_other(sliced):
    lines = {line.words: line for line in slice_table(sliced).slices}
    assert [other.title for other in lines["green"].also_found] == ["apple: far along"]
    assert lines["far along"].stands_for.slice_id == lines["green"].slice_id
    assert lines["far along"].verdict_words.endswith(": apple: green")
    assert (lines["far along"].p_value, lines["far along"].q_value) == (None, None)


def test_slice_table__before_anything_was_measured__says_so(sliced):
    record = run_of(sliced)
    sliced.project.store.runs.save(record.model_copy(update={"evidence": ()}))
    lines = slice_table(sliced).slices
    assert {line.verdict_words for line in lines} == {"not tested yet"}
    assert all(line.inside is None and line.p_value is None for line in lines)


def test_slice_table__dismissed_slices__come_last_with_who_and_why(sliced):
    from weakspot.web.services.slice_editing import decision

    record = run_of(sliced)
    green = record.published()[0][0].slice_id
    decided = (decision(green, DecisionKind.DISMISSED, by="Ada", reason="known"),)
    sliced.project.store.runs.save(record.model_copy(update={"decisions": decided}))
    last = slice_table(sliced).slices[-1]
    assert (last.slice_id, last.dismissed.by, last.dismissed.reason) == (green, "Ada", "known")


def test_slice_table__without_a_run__is_empty(sliced):
    for run_id in sliced.project.store.runs.run_ids():
        (sliced.project.store.runs.folder / run_id / "run.json").unlink()
    table = slice_table(sliced)
    assert (table.run_id, table.slices, table.run_ids) == ("", [], [])


def test_run_of__after_a_change__reads_it_anew(sliced):
    before = run_of(sliced)
    assert run_of(sliced) is before
    sliced.project.store.runs.save(before.model_copy(update={"criterion": "another"}))
    assert run_of(sliced).criterion == "another"
