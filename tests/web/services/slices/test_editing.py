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


def _do(workspace, what, line, *given, **told):
    """Change a slice of the newest run as Ada does."""
    change = getattr(slice_editing, what)
    return change(workspace, run_of(workspace).run_id, line.slice_id, *given, by="Ada", **told)


def _merged(workspace, first, second, *, how="both"):
    asked = Merging(first=first, second=second, how=how, words="green or on a shelf")
    return slice_editing.merge(workspace, run_of(workspace).run_id, asked, by="Ada")


def test_rename__keeps_id_rule_and_evidence_and_says_who(sliced):
    before, green = run_of(sliced), _line(sliced, "green")
    changed = _do(sliced, "rename", green, words="unripe")
    after = run_of(sliced)
    assert (changed.line.slice_id, changed.line.title) == (green.slice_id, "unripe apples")
    assert after.evidence == before.evidence
    names = after.slice_by_id(green.slice_id).names
    said = [(name.contrast, name.describer) for name in names]
    assert said == [("unripe", "person"), ("green", "test")]
    (decided,) = _decisions(sliced, green.slice_id)
    told = decided.kind, decided.by, decided.reason
    assert told == (DecisionKind.RENAMED, "Ada", "Before: “green”")
    _do(sliced, "rename", green, words="sour")
    names = run_of(sliced).slice_by_id(green.slice_id).names
    assert [name.contrast for name in names] == ["sour", "green"]
    with pytest.raises(DataError, match="already"):
        _do(sliced, "rename", green, words="sour")


def test_dismiss__the_slice_that_stood_for_another__tests_the_other_and_goes_on_counting(sliced):
    green = _line(sliced, "green")
    _do(sliced, "dismiss", green, reason="known")
    other, after = _line(sliced, "far along"), _line(sliced, "green")
    assert other.verdict == "confirmed"
    assert other.q_value > other.p_value, "it is the second time that these samples are asked"
    figures = [(one.inside, one.p_value, one.q_value) for one in (after, green)]
    assert figures[0] == figures[1]
    assert [found.title for found, _ in run_of(sliced).published()] == ["apple: far along"]
    with pytest.raises(DataError, match="already"):
        _do(sliced, "dismiss", green, reason="known")
    restored = _do(sliced, "restore", green)
    assert (restored.line.verdict, restored.line.dismissed) == ("confirmed", None)
    assert _line(sliced, "far along").verdict == "same as another slice"
    with pytest.raises(DataError, match="not dismissed"):
        _do(sliced, "restore", green)


def test_move_threshold__makes_a_new_slice_in_place_of_the_old_one(sliced):
    record, old = run_of(sliced), _line(sliced, "far along")
    seen = look_at(sliced, record, record.slice_by_id(old.slice_id))
    threshold = float(np.median(seen.scores[seen.inside]))
    _do(sliced, "dismiss", _line(sliced, "green"), reason="out of the way")
    new = _do(sliced, "move_threshold", old, threshold=threshold).line
    after = run_of(sliced)
    assert new.slice_id != old.slice_id
    assert (new.verdict, new.accepted_by) == ("confirmed", "Ada")
    assert new.inside.total < old.inside.total
    assert after.dismissed()[old.slice_id].reason == "Replaced by “apple: far along (directions)”"
    found = after.slice_by_id(new.slice_id)
    assert found.found_on == record.slices[0].found_on
    assert found.n_found == int((seen.scores >= threshold).sum())
    # What was asked before stays in the ledger, whether it was dismissed or not.
    assert new.n_tested == 1
    assert new.q_value > new.p_value
    assert sliced.ledger.standing().n_batches >= 2
    with pytest.raises(DataError, match="Nothing would change"):
        _do(sliced, "move_threshold", new, threshold=threshold)
    with pytest.raises(DataError, match="threshold"):
        _do(sliced, "move_threshold", _line(sliced, "on a shelf"), threshold=0.0)


def test_move_threshold__back_to_where_it_was__restores_the_old_slice(sliced):
    old = _line(sliced, "far along")
    moved = _do(sliced, "move_threshold", old, threshold=0.6).line
    back = _do(sliced, "move_threshold", moved, threshold=0.35).line
    assert (back.slice_id, back.dismissed) == (old.slice_id, None)
    assert set(run_of(sliced).dismissed()) == {moved.slice_id}


@pytest.mark.parametrize(
    ("is_kept", "words"), [(True, "green, shelf or table"), (False, "green, not shelf or table")]
)
def test_narrow__by_values__keeps_or_leaves_out_members(sliced, is_kept, words):
    green = _line(sliced, "green")
    asked = Narrowing(column="place", values=["shelf", "table"], is_kept=is_kept)
    changed = _do(sliced, "narrow", green, asked)
    after = run_of(sliced)
    members = after.slice_by_id(changed.line.slice_id).members(sliced.discovery)
    places = sliced.samples.dataset.metadata("place").take(members).to_pylist()
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
    asked = Narrowing(column=column, values=values, is_kept=True)
    with pytest.raises(DataError, match=message):
        _do(sliced, "narrow", _line(sliced, "green"), asked)
    assert run_of(sliced).decisions == ()


def test_columns_of__count_members_and_failures_by_value_also_of_yes_and_no(sliced):
    record, green = run_of(sliced), _line(sliced, "green")
    found = record.slice_by_id(green.slice_id)
    columns = {one.column: one for one in slice_editing.columns_of(sliced, record, found)}
    failures, n_inside, *_ = look_at(sliced, record, found).counts
    for column in columns.values():
        assert (sum(column.inside), sum(column.failed)) == (n_inside, failures)
    ripe = Narrowing(column="is_ripe", values=columns["is_ripe"].values[:1], is_kept=True)
    changed = _do(sliced, "narrow", green, ripe)
    n_found = run_of(sliced).slice_by_id(changed.line.slice_id).n_found
    assert 0 < n_found == columns["is_ripe"].inside[0]


@pytest.mark.parametrize("how", ["either", "both"])
def test_merge__two_slices__become_one_that_is_proven(sliced, how):
    record = run_of(sliced)
    green, shelf = _line(sliced, "green").slice_id, _line(sliced, "on a shelf").slice_id
    sides = [
        set(record.slice_by_id(one).members(sliced.discovery).tolist()) for one in (green, shelf)
    ]
    changed = _merged(sliced, green, shelf, how=how)
    after = run_of(sliced)
    merged = after.slice_by_id(changed.line.slice_id)
    wanted = sides[0] | sides[1] if how == "either" else sides[0] & sides[1]
    assert set(merged.members(sliced.discovery).tolist()) == wanted
    assert isinstance(merged.rule, AnyOfRule) == (how == "either")
    # Those in both are few, and this is the second time that these samples are asked.
    assert changed.line.verdict == ("confirmed" if how == "either" else "not confirmed")
    assert set(after.dismissed()) == {green, shelf}
    kinds = [one.kind for one in _decisions(sliced, changed.line.slice_id)]
    assert kinds == [DecisionKind.ACCEPTED, DecisionKind.MERGED]
    # The merged slice is reported, and can be measured again by the command line.
    again = sliced.project.verify(after.run_id)
    entry = next(one for one in again.evidence if one.slice_id == changed.line.slice_id)
    assert (entry.verdict, entry.q_value) == (changed.line.verdict, changed.line.q_value)
    assert sliced.project.report(after.run_id)[0].exists()


def test_merge__of_a_slice_with_itself_or_another_class__is_refused(sliced):
    record, green = run_of(sliced), _line(sliced, "green").slice_id
    with pytest.raises(DataError, match="itself"):
        _merged(sliced, green, green)
    pear = record.slices[2].model_copy(update={"class_name": "pear"})
    changed = {"slices": (*record.slices[:2], pear), "evidence": ()}
    sliced.project.store.runs.save(record.model_copy(update=changed))
    with pytest.raises(DataError, match="same class"):
        _merged(sliced, green, pear.slice_id)
