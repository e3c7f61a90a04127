from weakspot.core.decisions import DecisionKind
from weakspot.web.services.slices.table import run_of, slice_table


def test_slice_table__of_a_run__is_in_the_order_of_the_report(sliced):
    table = slice_table(sliced)
    assert [line.words for line in table.slices] == ["green", "on a shelf", "far along"]
    assert [line.verdict for line in table.slices] == [
        "confirmed",
        "not confirmed",
        "same as another slice",
    ]
    assert table.run_ids == [table.run_id]
    assert table.n_tested == 2


def test_slice_table__figures__are_those_of_the_record(sliced):
    record = run_of(sliced)
    (found, evidence), *_ = record.published()
    line = slice_table(sliced).slices[0]
    assert (line.slice_id, line.title, line.class_title) == (
        found.slice_id,
        "apple: green",
        "apple",
    )
    assert (line.inside.count, line.inside.total) == (evidence.failures_inside, evidence.n_inside)
    assert line.inside.interval == evidence.interval_inside
    assert (line.p_value, line.q_value, line.gap) == (
        evidence.p_value,
        evidence.q_value,
        evidence.headline_gap,
    )


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
    from weakspot.web.services.slices.changes import decision

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
