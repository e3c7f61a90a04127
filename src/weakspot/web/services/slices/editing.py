"""What people do with slices: words, thresholds, values, merging, dismissing. Whatever changes members is proven anew."""

from collections.abc import Callable, Sequence

import numpy as np
import pyarrow as pa

from weakspot.core.decisions import Decision, DecisionKind
from weakspot.core.errors import DataError
from weakspot.core.rules import ColumnRule, MembershipRule
from weakspot.core.run import RunRecord
from weakspot.core.slices import FailureSlice, SliceName
from weakspot.report.wording import title_with_method
from weakspot.web.services.slices import changes
from weakspot.web.services.slices.requests import Merging, Narrowing, all_of, any_of, spoken_name
from weakspot.web.services.slices.samples import LookedAt, look_at, threshold_of
from weakspot.web.services.slices.table import SliceLine, slice_lines
from weakspot.web.services.view import View
from weakspot.web.services.workspace import Workspace

MERGED = "merged"
MOST_VALUES = 40
Rebuild = Callable[[RunRecord, FailureSlice], FailureSlice]


class ChangedSlice(View):
    """What became of a change: the slice as it is now, and the run that holds it."""

    run_id: str
    line: SliceLine


class ColumnValues(View):
    """A column by whose values a slice can be narrowed.

    Args:
        column: its name.
        values: what it holds among the samples of the class that people look at, most frequent first.
        inside: members with each value.
        failed: failures among them.
    """

    column: str
    values: list[str]
    inside: list[int]
    failed: list[int]


class SliceColumns(View):
    """All columns by which a slice can be narrowed."""

    columns: list[ColumnValues]


def rename(
    workspace: Workspace, run_id: str, slice_id: str, *, words: str, by: str
) -> ChangedSlice:
    """Put a person's words first among the names of a slice; who belongs to it stays, so nothing is tested anew."""

    def change(record: RunRecord) -> RunRecord:
        found = changes.slice_of(record, slice_id)
        if found.name is not None and found.name.contrast == words:
            raise DataError("These are the words that the slice has already.", given=words)
        name = spoken_name(workspace, found.class_name, found.side, words)
        others = [one for one in found.names if one.describer != name.describer]
        renamed = found.model_copy(update={"names": (name, *others)})
        before = "It had no words." if found.name is None else f"Before: “{found.name.contrast}”"
        return add_decisions(
            replace_slice(record, renamed),
            [changes.decision(slice_id, DecisionKind.RENAMED, by=by, reason=before)],
        )

    return _change(workspace, run_id, slice_id, change)


def dismiss(
    workspace: Workspace, run_id: str, slice_id: str, *, reason: str, by: str
) -> ChangedSlice:
    """Set a slice aside for a reason; its test was made and goes on counting."""

    def change(record: RunRecord) -> RunRecord:
        changes.slice_of(record, slice_id)
        if slice_id in record.dismissed():
            raise DataError("The slice is dismissed already.", given=slice_id)
        decided = add_decisions(
            record, [changes.decision(slice_id, DecisionKind.DISMISSED, by=by, reason=reason)]
        )
        return changes.prove(workspace, decided, by=by)

    return _change(workspace, run_id, slice_id, change)


def restore(workspace: Workspace, run_id: str, slice_id: str, *, by: str) -> ChangedSlice:

    def change(record: RunRecord) -> RunRecord:
        changes.slice_of(record, slice_id)
        if slice_id not in record.dismissed():
            raise DataError("The slice is not dismissed.", given=slice_id)
        decided = add_decisions(record, [changes.decision(slice_id, DecisionKind.RESTORED, by=by)])
        return changes.prove(workspace, decided, by=by)

    return _change(workspace, run_id, slice_id, change)


def move_threshold(
    workspace: Workspace, run_id: str, slice_id: str, *, threshold: float, by: str
) -> ChangedSlice:
    """Let membership of a slice begin elsewhere: a new slice that takes its place.

    Raises:
        DataError: if its rule has no threshold.
    """

    def rebuild(_record: RunRecord, found: FailureSlice) -> FailureSlice:
        if threshold_of(found) is None:
            raise DataError(
                "Whether a sample belongs to this slice does not depend on a threshold.",
                given=found.rule.kind,
            )
        rule = found.rule.model_copy(update={"threshold": threshold})
        return _derive(found, rule, names=found.names)

    return _replace(workspace, run_id, slice_id, rebuild, by=by)


def narrow(
    workspace: Workspace, run_id: str, slice_id: str, asked: Narrowing, *, by: str
) -> ChangedSlice:
    """Keep only members with some values of a column, or all but those: a new slice that takes its place.

    Raises:
        DataError: if the column does not hold the values, or nobody or everybody would be left.
    """

    def rebuild(record: RunRecord, found: FailureSlice) -> FailureSlice:
        known = _values_of(workspace, record, asked.column)
        unknown = [value for value in asked.values if value not in known]
        if unknown:
            raise DataError(
                "The column does not hold this value.", where=asked.column, given=unknown[0]
            )
        kept = tuple(value for value in known if (value in asked.values) == asked.is_kept)
        if len(kept) in (0, len(known)):
            who = "Everybody" if kept else "Nobody"
            raise DataError(
                f"{who} would be left.", where=asked.column, fix="Choose some of its values."
            )
        rule = all_of(found.rule, ColumnRule(column=asked.column, values=kept))
        words = f"{'' if asked.is_kept else 'not '}{' or '.join(asked.values)}"
        return _derive(found, rule, names=_narrowed_names(workspace, found, words))

    return _replace(workspace, run_id, slice_id, rebuild, by=by)


def merge(workspace: Workspace, run_id: str, asked: Merging, *, by: str) -> ChangedSlice:
    """Make one slice of two of the same class, with the members of either or of both; it takes their place.

    Raises:
        DataError: if they are of different classes, or were found on different halves.
    """
    made: list[str] = []

    def change(record: RunRecord) -> RunRecord:
        one, other = (
            changes.slice_of(record, slice_id) for slice_id in (asked.first, asked.second)
        )
        merged = _merge(workspace, one, other, asked)
        made.append(merged.slice_id)
        how = "Either of" if asked.how == "either" else "Both of"
        reason = f"{how} “{title_with_method(one)}” and “{title_with_method(other)}”"
        decisions = [changes.decision(merged.slice_id, DecisionKind.MERGED, by=by, reason=reason)]
        return _with_in_place(workspace, record, merged, [one, other], decisions, by=by)

    changed = changes.change_run(workspace, change, run_id=run_id)
    return changed_slice(changed, made[-1])


def columns_of(workspace: Workspace, record: RunRecord, found: FailureSlice) -> SliceColumns:
    """Return the columns by whose values a slice can be narrowed, with what its members hold on the half that people look at."""
    seen = look_at(workspace, record, found)
    found_values = [_column_values(name, seen) for name in seen.samples.dataset.metadata_names]
    return SliceColumns(columns=[column for column in found_values if column is not None])


def _column_values(name: str, seen: LookedAt) -> ColumnValues | None:
    """Return what members hold in a column, None if it has too many different values or only one."""
    column = seen.samples.dataset.metadata(name)
    if pa.types.is_nested(column.type):
        return None
    coded = column.take(seen.problem.rows).combine_chunks().dictionary_encode()
    values = coded.dictionary.to_pylist()
    if not 1 < len(values) <= MOST_VALUES:
        return None
    codes = np.asarray(coded.indices.fill_null(len(values)))
    order = np.argsort(-np.bincount(codes, minlength=len(values) + 1)[: len(values)], kind="stable")
    inside, failed = (
        np.bincount(codes[chosen], minlength=len(values) + 1)[order]
        for chosen in (seen.inside, seen.inside & seen.problem.failed)
    )
    return ColumnValues(
        column=name,
        values=[str(values[place]) for place in order],
        inside=inside.tolist(),
        failed=failed.tolist(),
    )


def changed_slice(record: RunRecord, slice_id: str) -> ChangedSlice:
    return ChangedSlice(
        run_id=record.run_id,
        line=next(line for line in slice_lines(record) if line.slice_id == slice_id),
    )


def _change(
    workspace: Workspace, run_id: str, slice_id: str, change: changes.Change
) -> ChangedSlice:
    return changed_slice(changes.change_run(workspace, change, run_id=run_id), slice_id)


def _replace(
    workspace: Workspace, run_id: str, slice_id: str, rebuild: Rebuild, *, by: str
) -> ChangedSlice:
    made: list[str] = []

    def change(record: RunRecord) -> RunRecord:
        found = changes.slice_of(record, slice_id)
        changed = rebuild(record, found)
        if changed.slice_id == slice_id:
            raise DataError("Nothing would change: the same samples belong to it.", given=slice_id)
        made.append(changed.slice_id)
        return _with_in_place(workspace, record, changed, [found], [], by=by)

    changed = changes.change_run(workspace, change, run_id=run_id)
    return changed_slice(changed, made[-1])


def _with_in_place(
    workspace: Workspace,
    record: RunRecord,
    new: FailureSlice,
    old: Sequence[FailureSlice],
    decisions: Sequence[Decision],
    *,
    by: str,
) -> RunRecord:
    dismissed = record.dismissed()
    decided = [changes.decision(new.slice_id, DecisionKind.ACCEPTED, by=by), *decisions]
    if new.slice_id in dismissed:
        decided.append(changes.decision(new.slice_id, DecisionKind.RESTORED, by=by))
    reason = f"Replaced by “{title_with_method(new)}”"
    decided += [
        changes.decision(one.slice_id, DecisionKind.DISMISSED, by=by, reason=reason)
        for one in old
        if one.slice_id not in dismissed and one.slice_id != new.slice_id
    ]
    known = {found.slice_id for found in record.slices}
    counted = new.model_copy(update={"n_found": look_at(workspace, record, new).counts[1]})
    slices = record.slices if new.slice_id in known else (*record.slices, counted)
    return changes.prove(
        workspace, add_decisions(record.model_copy(update={"slices": slices}), decided), by=by
    )


def _merge(
    workspace: Workspace, one: FailureSlice, other: FailureSlice, asked: Merging
) -> FailureSlice:
    if one.slice_id == other.slice_id:
        raise DataError("A slice cannot be merged with itself.", given=one.slice_id)
    if (one.class_name, one.side) != (other.class_name, other.side):
        raise DataError(
            "Only slices of the same class can be merged.", given=(one.title, other.title)
        )
    if one.found_on.digest != other.found_on.digest:
        raise DataError(
            "These slices were found on different halves, so that no samples are left to prove them together."
        )
    rule = any_of(one.rule, other.rule) if asked.how == "either" else all_of(one.rule, other.rule)
    name = spoken_name(workspace, one.class_name, one.side, asked.words)
    return one.model_copy(
        update={
            "rule": rule,
            "method": MERGED,
            "parameters": {"merged": [one.slice_id, other.slice_id], "how": asked.how},
            "strength": None,
            "strength_p": None,
            "names": (name,),
            "easy_names": (),
        }
    )


def _derive(
    found: FailureSlice, rule: MembershipRule, *, names: tuple[SliceName, ...]
) -> FailureSlice:
    return found.model_copy(
        update={
            "rule": rule,
            "parameters": {**found.parameters, "changed_from": found.slice_id},
            "strength": None,
            "strength_p": None,
            "names": names,
        }
    )


def _narrowed_names(workspace: Workspace, found: FailureSlice, words: str) -> tuple[SliceName, ...]:
    before = "" if found.name is None else found.name.contrast
    return (
        spoken_name(
            workspace, found.class_name, found.side, f"{before}, {words}" if before else words
        ),
        *found.names,
    )


def _values_of(workspace: Workspace, record: RunRecord, column: str) -> list[str]:
    """Return everything that a column holds, in the whole project: a rule must hold for samples that nobody looks at, too."""
    dataset = workspace.samples_for(record).dataset
    held = dataset.metadata(column)
    if pa.types.is_nested(held.type):
        raise DataError(
            "The column holds lists, so that members cannot be chosen by its values.", where=column
        )
    return sorted(str(value) for value in held.unique().to_pylist() if value is not None)


def replace_slice(record: RunRecord, found: FailureSlice) -> RunRecord:
    slices = tuple(found if one.slice_id == found.slice_id else one for one in record.slices)
    return record.model_copy(update={"slices": slices})


def add_decisions(record: RunRecord, decisions: Sequence[Decision]) -> RunRecord:
    return record.model_copy(update={"decisions": (*record.decisions, *decisions)})
