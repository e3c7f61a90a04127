import numpy as np
import pytest

from weakspot.core.errors import DataError
from weakspot.core.rules import AnyOfRule
from weakspot.core.run import DecisionKind
from weakspot.web.services import slice_editing
from weakspot.web.services.slice_editing import Merging, Narrowing
from weakspot.web.services.slices import look_at, run_of, slice_table


def _line(workspace, words):
    return next(line for line in slice_table(workspace).slices if line.words == words)


def _decisions(workspace, slice_id):
    return [one for one in run_of(workspace).decisions if one.slice_id == slice_id]


def test_rename__keeps_id_rule_and_evidence_and_says_who(sliced):
    before, green = run_of(sliced), _line(sliced, "green")
    changed = slice_editing.rename(sliced, before.run_id, green.slice_id, words="unripe", by="Ada")
    after = run_of(sliced)
    assert changed.line.slice_id == green.slice_id
    assert changed.line.title == "unripe apples"
    assert after.evidence == before.evidence
    found = after.slice_by_id(green.slice_id)
    assert [(name.contrast, name.describer) for name in found.names] == [
        ("unripe", "person"),
        ("green", "test"),
    ]
    (decided,) = _decisions(sliced, green.slice_id)
    assert (decided.kind, decided.by, decided.reason) == (
        DecisionKind.RENAMED,
        "Ada",
        "Before: “green”",
    )
    slice_editing.rename(sliced, before.run_id, green.slice_id, words="sour", by="Ada")
    assert [name.contrast for name in run_of(sliced).slice_by_id(green.slice_id).names] == [
        "sour",
        "green",
    ]
    with pytest.raises(DataError, match="already"):
        slice_editing.rename(sliced, before.run_id, green.slice_id, words="sour", by="Ada")


def test_dismiss__the_slice_that_stood_for_another__tests_the_other_and_goes_on_counting(sliced):
    run_id, green = run_of(sliced).run_id, _line(sliced, "green")
    slice_editing.dismiss(sliced, run_id, green.slice_id, reason="known", by="Ada")
    other, after = _line(sliced, "far along"), _line(sliced, "green")
    assert other.verdict == "confirmed"
    assert other.q_value > other.p_value, "it is the second time that these samples are asked"
    assert (after.inside, after.p_value, after.q_value) == (
        green.inside,
        green.p_value,
        green.q_value,
    )
    assert [found.title for found, _ in run_of(sliced).published()] == ["apple: far along"]
    with pytest.raises(DataError, match="already"):
        slice_editing.dismiss(sliced, run_id, green.slice_id, reason="known", by="Ada")
    restored = slice_editing.restore(sliced, run_id, green.slice_id, by="Ada")
    assert (restored.line.verdict, restored.line.dismissed) == ("confirmed", None)
    assert _line(sliced, "far along").verdict == "same as another slice"
    with pytest.raises(DataError, match="not dismissed"):
        slice_editing.restore(sliced, run_id, green.slice_id, by="Ada")


def test_move_threshold__makes_a_new_slice_in_place_of_the_old_one(sliced):
    record, old = run_of(sliced), _line(sliced, "far along")
    seen = look_at(sliced, record, record.slice_by_id(old.slice_id))
    threshold = float(np.median(seen.scores[seen.inside]))
    slice_editing.dismiss(
        sliced, record.run_id, _line(sliced, "green").slice_id, reason="out of the way", by="Ada"
    )
    changed = slice_editing.move_threshold(
        sliced, record.run_id, old.slice_id, threshold=threshold, by="Ada"
    )
    after = run_of(sliced)
    assert changed.line.slice_id != old.slice_id
    assert changed.line.verdict == "confirmed"
    assert changed.line.inside.total < old.inside.total
    assert changed.line.accepted_by == "Ada"
    assert after.dismissed()[old.slice_id].reason == "Replaced by “apple: far along (directions)”"
    assert after.slice_by_id(changed.line.slice_id).found_on == record.slices[0].found_on
    assert after.slice_by_id(changed.line.slice_id).n_found == int((seen.scores >= threshold).sum())
    # What was asked before stays in the ledger, whether it was dismissed or not.
    assert changed.line.n_tested == 1
    assert changed.line.q_value > changed.line.p_value
    assert sliced.ledger.standing().n_batches >= 2
    with pytest.raises(DataError, match="Nothing would change"):
        slice_editing.move_threshold(
            sliced, record.run_id, changed.line.slice_id, threshold=threshold, by="Ada"
        )
    with pytest.raises(DataError, match="threshold"):
        slice_editing.move_threshold(
            sliced, record.run_id, _line(sliced, "on a shelf").slice_id, threshold=0.0, by="Ada"
        )


def test_move_threshold__back_to_where_it_was__restores_the_old_slice(sliced):
    record, old = run_of(sliced), _line(sliced, "far along")
    moved = slice_editing.move_threshold(
        sliced, record.run_id, old.slice_id, threshold=0.6, by="Ada"
    )
    back = slice_editing.move_threshold(
        sliced, record.run_id, moved.line.slice_id, threshold=0.35, by="Ada"
    )
    assert back.line.slice_id == old.slice_id
    assert back.line.dismissed is None
    assert set(run_of(sliced).dismissed()) == {moved.line.slice_id}


@pytest.mark.parametrize(
    ("is_kept", "words"), [(True, "green, shelf or table"), (False, "green, not shelf or table")]
)
def test_narrow__by_values__keeps_or_leaves_out_members(sliced, is_kept, words):
    record, green = run_of(sliced), _line(sliced, "green")
    asked = Narrowing(column="place", values=["shelf", "table"], is_kept=is_kept)
    changed = slice_editing.narrow(sliced, record.run_id, green.slice_id, asked, by="Ada")
    after = run_of(sliced)
    found = after.slice_by_id(changed.line.slice_id)
    places = (
        sliced.samples.dataset.metadata("place").take(found.members(sliced.discovery)).to_pylist()
    )
    assert set(places) == ({"shelf", "table"} if is_kept else {"floor"})
    assert changed.line.words == words
    assert set(after.dismissed()) == {green.slice_id}


@pytest.mark.parametrize(
    ("column", "values", "message"),
    [
        ("place", ["roof"], "does not hold"),
        ("place", ["shelf", "table", "floor"], "Everybody"),
        ("weight", ["1"], "no metadata column"),
    ],
)
def test_narrow__by_what_is_not_there__is_refused(sliced, column, values, message):
    record, green = run_of(sliced), _line(sliced, "green")
    with pytest.raises(DataError, match=message):
        slice_editing.narrow(
            sliced,
            record.run_id,
            green.slice_id,
            Narrowing(column=column, values=values, is_kept=True),
            by="Ada",
        )
    assert run_of(sliced).decisions == ()


def test_columns_of__count_members_and_failures_by_value_also_of_yes_and_no(sliced):
    record, green = run_of(sliced), _line(sliced, "green")
    found = record.slice_by_id(green.slice_id)
    columns = {one.column: one for one in slice_editing.columns_of(sliced, record, found)}
    failures, n_inside, *_ = look_at(sliced, record, found).counts
    for column in columns.values():
        assert (sum(column.inside), sum(column.failed)) == (n_inside, failures)
    ripe = Narrowing(column="is_ripe", values=columns["is_ripe"].values[:1], is_kept=True)
    changed = slice_editing.narrow(sliced, record.run_id, green.slice_id, ripe, by="Ada")
    assert (
        0
        < run_of(sliced).slice_by_id(changed.line.slice_id).n_found
        == columns["is_ripe"].inside[0]
    )


@pytest.mark.parametrize("how", ["either", "both"])
def test_merge__two_slices__become_one_that_is_proven(sliced, how):
    record = run_of(sliced)
    green, shelf = _line(sliced, "green").slice_id, _line(sliced, "on a shelf").slice_id
    sides = [
        set(record.slice_by_id(one).members(sliced.discovery).tolist()) for one in (green, shelf)
    ]
    asked = Merging(first=green, second=shelf, how=how, words="green or on a shelf")
    changed = slice_editing.merge(sliced, record.run_id, asked, by="Ada")
    after = run_of(sliced)
    merged = after.slice_by_id(changed.line.slice_id)
    wanted = sides[0] | sides[1] if how == "either" else sides[0] & sides[1]
    assert set(merged.members(sliced.discovery).tolist()) == wanted
    assert isinstance(merged.rule, AnyOfRule) == (how == "either")
    # Those in both are few, and this is the second time that these samples are asked.
    assert changed.line.verdict == ("confirmed" if how == "either" else "not confirmed")
    assert set(after.dismissed()) == {green, shelf}
    assert [one.kind for one in _decisions(sliced, changed.line.slice_id)] == [
        DecisionKind.ACCEPTED,
        DecisionKind.MERGED,
    ]
    # The merged slice is reported, and can be measured again by the command line.
    again = sliced.project.verify(after.run_id)
    entry = next(one for one in again.evidence if one.slice_id == changed.line.slice_id)
    assert (entry.verdict, entry.q_value) == (changed.line.verdict, changed.line.q_value)
    assert sliced.project.report(after.run_id)[0].exists()


def test_merge__of_a_slice_with_itself_or_another_class__is_refused(sliced):
    record, green = run_of(sliced), _line(sliced, "green").slice_id
    with pytest.raises(DataError, match="itself"):
        slice_editing.merge(
            sliced,
            record.run_id,
            Merging(first=green, second=green, how="both", words="x"),
            by="Ada",
        )
    pear = record.slices[2].model_copy(update={"class_name": "pear"})
    sliced.project.store.runs.save(
        record.model_copy(update={"slices": (*record.slices[:2], pear), "evidence": ()})
    )
    with pytest.raises(DataError, match="same class"):
        slice_editing.merge(
            sliced,
            record.run_id,
            Merging(first=green, second=pear.slice_id, how="both", words="x"),
            by="Ada",
        )
