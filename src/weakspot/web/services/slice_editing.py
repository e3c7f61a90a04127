"""What people do with slices: make, rename, merge, narrow, dismiss, undo. Whatever changes members is proven anew.

Tests that were made go on counting, whatever is undone.
"""

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from itertools import product
from typing import Annotated, Literal

import numpy as np
import pyarrow as pa
from pydantic import AfterValidator, Field, JsonValue

from weakspot.core.arrays import BoolArray, DoubleArray, FloatArray, IntArray, generator
from weakspot.core.errors import DataError, ModelError, NotEnoughDataError
from weakspot.core.evidence import Evidence
from weakspot.core.failures import ClassProblem, Side, describe_criterion
from weakspot.core.rules import AllOfRule, AnyOfRule, ColumnRule, LinearRule, MembershipRule, Rule
from weakspot.core.run import Decision, DecisionKind, RunRecord
from weakspot.core.samples import separating_cut
from weakspot.core.slices import FailureSlice, SliceName
from weakspot.core.statistics import association
from weakspot.project.project import Project
from weakspot.report.wording import title_with_method
from weakspot.run import loop
from weakspot.run.halves import used_rows
from weakspot.run.preparation import CLIP
from weakspot.run.stage_clock import finished, new_record
from weakspot.run.verdicts import Asking, classifier_facts
from weakspot.web.services.slices import LookedAt, SliceLine, look_at, slice_line, threshold_of
from weakspot.web.services.view import View
from weakspot.web.services.workspace import Workspace
from weakspot.words.caption_judging import ClassView
from weakspot.words.meanings import title_of_words

Change = Callable[[RunRecord], RunRecord]
OWN_THRESHOLD = "own_threshold"
"""Parameter of a slice whose threshold a person chose, instead of the one that is best on the discovery half."""
NEW_RUN = ""


def decision(slice_id: str, kind: DecisionKind, *, by: str, reason: str = "") -> Decision:
    return Decision(
        slice_id=slice_id,
        kind=kind,
        by=by,
        time=datetime.now(UTC).isoformat(timespec="seconds"),
        reason=reason,
    )


def with_slices(
    workspace: Workspace,
    slices: Sequence[FailureSlice],
    *,
    by: str,
    run_id: str | None = None,
    reason: str = "",
) -> RunRecord:
    """Add a person's slices to a run (the newest by default; a new one if there is none) and prove all of its slices anew.

    What the confirmation half was ever asked is in the ledger, whether it became a slice or not, and stays there when a slice is
    taken out again. Saying the same twice changes nothing.

    Args:
        workspace: the project.
        slices: what the person accepts; found on the discovery half.
        by: who accepts them.
        run_id: which run; the newest by default, or a new one if that is of other samples.
        reason: in that person's words.
    """

    def add(record: RunRecord) -> RunRecord:
        known = {found.slice_id for found in record.slices}
        accepted = {
            one.slice_id for one in record.decisions if one.kind is DecisionKind.ACCEPTED
        } - set(record.dismissed())
        wanted = {found.slice_id: found for found in slices}
        new = tuple(found for name, found in wanted.items() if name not in known)
        restored = [
            decision(name, DecisionKind.RESTORED, by=by)
            for name in wanted
            if name in record.dismissed()
        ]
        made = [
            decision(name, DecisionKind.ACCEPTED, by=by, reason=reason)
            for name in wanted
            if name not in accepted
        ]
        decided = (*record.decisions, *restored, *made)
        return prove(
            workspace,
            record.model_copy(update={"slices": (*record.slices, *new), "decisions": decided}),
            by=by,
        )

    return change_run(workspace, add, run_id=run_id or _run_to_add_to(workspace))


def prove(workspace: Workspace, record: RunRecord, *, by: str = "") -> RunRecord:
    """Return a run whose slices are measured on the confirmation half, with verdicts read off the ledger.

    Only slices that these samples were never asked about cost anything. What people dismissed keeps the figures that it had, but
    it neither stands for slices with nearly the same members nor explains others, so that a changed slice can take the place of
    the one that it was made from.
    """
    dismissed = record.dismissed()
    kept = record.model_copy(
        update={"slices": tuple(one for one in record.slices if one.slice_id not in dismissed)}
    )
    verified = loop.verify_slices(
        kept,
        workspace.samples_for(record),
        workspace.project.settings,
        workspace.criterion,
        asking=Asking(ledger=workspace.ledger, source="browser", by=by),
    )
    # Whatever explained a dismissed slice may be gone.
    set_aside = [
        entry.model_copy(update={"explained": None})
        for entry in record.evidence
        if entry.slice_id in dismissed
    ]
    by_slice = {entry.slice_id: entry for entry in (*verified.evidence, *set_aside)}
    ordered = tuple(
        by_slice[found.slice_id] for found in record.slices if found.slice_id in by_slice
    )
    return record.model_copy(update={"evidence": ordered, "trees": verified.trees})


def change_run(workspace: Workspace, change: Change, *, run_id: str | None = None) -> RunRecord:
    """Load a run, change it and save it, with nobody else in between.

    Args:
        workspace: the project.
        change: gets the run as it is on disk now.
        run_id: which run; the newest by default. Without any run, or with an empty text, a new one is started.
    """
    with workspace.editing() as project:
        record = None if run_id == NEW_RUN else workspace.record(run_id)
        record = record or _first_run(workspace, project)
        changed = finished(change(record), stages=record.stages)
        project.store.runs.save(changed)
    return changed


def n_decisions(workspace: Workspace) -> tuple[str, int]:
    """Return how much people decided in the newest run; it grows whenever somebody decides something."""
    record = workspace.record()
    return ("", 0) if record is None else (record.run_id, len(record.decisions))


def slice_of(record: RunRecord, slice_id: str) -> FailureSlice:
    """Return a slice of a run.

    Raises:
        DataError: if it has none of that id.
    """
    found = next((one for one in record.slices if one.slice_id == slice_id), None)
    if found is None:
        raise DataError(f"The run {record.run_id} has no slice {slice_id!r}.", given=slice_id)
    return found


def evidence_of(record: RunRecord, slice_id: str) -> Evidence | None:
    return next((entry for entry in record.evidence if entry.slice_id == slice_id), None)


def _run_to_add_to(workspace: Workspace) -> str | None:
    record = workspace.record()
    if record is None:
        return NEW_RUN
    pairs = workspace.prepared.halves(workspace.project.settings, workspace.criterion)
    today = workspace.once(
        "discovery digests", lambda: {discovery.digest() for discovery, _ in pairs}
    )
    return (
        record.run_id if all(found.found_on.digest in today for found in record.slices) else NEW_RUN
    )


def _first_run(workspace: Workspace, project: Project) -> RunRecord:
    samples, settings = workspace.samples, project.settings
    record = new_record(
        settings,
        inputs=workspace.prepared.inputs,
        criterion=describe_criterion(workspace.criterion),
    )
    every = used_rows(samples, settings)
    facts = classifier_facts(samples.dataset, every, workspace.criterion)
    return record.model_copy(update={"classifier": facts})


MAX_WORDS_LENGTH, MAX_REASON_LENGTH, MAX_VALUE_LENGTH = 200, 500, 1000
MAX_ROWS = 20_000
MAX_CHOSEN_VALUES = 200
MAX_ROW = 2**40
MAX_SCORE = 1e9


def _one_line(text: str) -> str:
    """Return a text without blanks around it; refuse what cannot be read in a line."""
    stripped = text.strip()
    if not stripped:
        raise ValueError("Say something.")
    if not stripped.isprintable():
        raise ValueError("Only words, in one line.")
    return stripped


Words = Annotated[str, Field(min_length=1, max_length=MAX_WORDS_LENGTH), AfterValidator(_one_line)]
Reason = Annotated[
    str, Field(min_length=1, max_length=MAX_REASON_LENGTH), AfterValidator(_one_line)
]
SliceId = Annotated[str, Field(pattern=r"^[0-9a-f]{12}$")]


class Naming(View):
    """Words for a slice."""

    words: Words


class Dismissal(View):
    """Why a slice is set aside."""

    reason: Reason


class NewThreshold(View):
    """Where membership begins, in the measure of the rule."""

    threshold: float = Field(ge=-MAX_SCORE, le=MAX_SCORE, allow_inf_nan=False)


class Narrowing(View):
    """Keep only members with some values of a column, or all but those.

    Args:
        column: its name.
        values: what it holds.
        is_kept: whether these values stay, or go.
    """

    column: Annotated[str, Field(min_length=1, max_length=MAX_VALUE_LENGTH)]
    values: list[Annotated[str, Field(max_length=MAX_VALUE_LENGTH)]] = Field(
        min_length=1, max_length=MAX_CHOSEN_VALUES
    )
    is_kept: bool


class Merging(Naming):
    """Two slices to be made one.

    Args:
        first: one of them.
        second: the other.
        how: `either` for the members of either, `both` for the members of both.
    """

    first: SliceId
    second: SliceId
    how: Literal["either", "both"]


class PickedRows(Naming):
    """Samples that a person picked out.

    Args:
        title: their class.
        rows: row numbers; those of other classes, or of samples that are not to be looked at, are left out.
        tables: what the row numbers refer to; empty if that is not known.
    """

    title: Annotated[str, Field(min_length=1, max_length=MAX_VALUE_LENGTH)]
    rows: list[Annotated[int, Field(ge=0, le=MAX_ROW)]] = Field(min_length=1, max_length=MAX_ROWS)
    tables: Annotated[str, Field(max_length=200)] = ""


PERSON = "person"
N_NEAREST = 50


def spoken_name(workspace: Workspace, class_name: str, side: Side | None, words: str) -> SliceName:
    """Return a person's words as a name; with a text side, also how accurate the classifier is on the samples nearest to them."""
    title = title_of_words(words, class_name) if side is not Side.ABSENT else ""
    phrase = f"an image of {words}"
    name = SliceName(phrase=phrase, contrast=words, title=title, score=0.0, describer=PERSON)
    problem = next(
        (
            one
            for one in workspace.problems.values()
            if (one.class_name, one.side) == (class_name, side)
        ),
        None,
    )
    if problem is None:
        return name
    try:
        text = workspace.embed_texts([name.phrase])[0]
        known, embeddings = workspace.class_embeddings(problem.title)
    except ModelError:
        return name
    if not len(embeddings):
        return name
    view = ClassView(
        rows=known.rows,
        embeddings=embeddings,
        failed=known.failed,
        covariance=np.zeros((0, 0), dtype=np.float32),
    )
    accuracies = view.accuracies_nearest(text)
    nearest = float(accuracies[view.n_near(N_NEAREST) - 1])
    return name.model_copy(update={"accuracy_nearest": nearest, "curve": view.curve(accuracies)})


MAX_PARTS = 64


def any_of(first: Rule, second: Rule) -> Rule:
    return _either([*_choices(first), *_choices(second)])


def all_of(first: Rule, second: Rule) -> Rule:
    return _either([_both(one, other) for one, other in product(_choices(first), _choices(second))])


def _choices(rule: Rule) -> tuple[Rule, ...]:
    return rule.rules if isinstance(rule, AnyOfRule) else (rule,)


def _conditions(rule: Rule) -> tuple[Rule, ...]:
    return rule.rules if isinstance(rule, AllOfRule) else (rule,)


def _both(first: Rule, second: Rule) -> Rule:
    conditions = _different([*_conditions(first), *_conditions(second)])
    return conditions[0] if len(conditions) == 1 else AllOfRule(rules=tuple(conditions))


def _different(rules: list[Rule]) -> list[Rule]:
    return [rule for place, rule in enumerate(rules) if rule not in rules[:place]]


def _either(parts: list[Rule]) -> Rule:
    different = _different(parts)
    if len(different) > MAX_PARTS:
        raise DataError(
            "The merged rule would have too many parts.",
            given=len(different),
            fix="Merge simpler slices.",
        )
    return different[0] if len(different) == 1 else AnyOfRule(rules=tuple(different))


MERGED = "merged"
MAX_COLUMN_VALUES = 40
Rebuild = Callable[..., FailureSlice]


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


def rename(
    workspace: Workspace, run_id: str, slice_id: str, *, words: str, by: str
) -> ChangedSlice:
    """Put a person's words first among the names of a slice; who belongs to it stays, so nothing is tested anew."""

    def change(record: RunRecord) -> RunRecord:
        found = slice_of(record, slice_id)
        if found.name is not None and found.name.contrast == words:
            raise DataError("These are the words that the slice has already.", given=words)
        name = spoken_name(workspace, found.class_name, found.side, words)
        others = [one for one in found.names if one.describer != name.describer]
        renamed = found.model_copy(update={"names": (name, *others)})
        before = "It had no words." if found.name is None else f"Before: “{found.name.contrast}”"
        return add_decisions(
            replace_slice(record, renamed),
            [decision(slice_id, DecisionKind.RENAMED, by=by, reason=before)],
        )

    return _change(workspace, run_id, slice_id, change)


def dismiss(
    workspace: Workspace, run_id: str, slice_id: str, *, reason: str, by: str
) -> ChangedSlice:
    """Set a slice aside for a reason; its test was made and goes on counting."""
    made = decision(slice_id, DecisionKind.DISMISSED, by=by, reason=reason)
    return _decide(workspace, run_id, made)


def restore(workspace: Workspace, run_id: str, slice_id: str, *, by: str) -> ChangedSlice:
    return _decide(workspace, run_id, decision(slice_id, DecisionKind.RESTORED, by=by))


def _decide(workspace: Workspace, run_id: str, made: Decision) -> ChangedSlice:
    """Dismiss a slice or take it back, and prove the run without it or with it."""
    is_dismissal = made.kind is DecisionKind.DISMISSED

    def change(record: RunRecord) -> RunRecord:
        slice_of(record, made.slice_id)
        if (made.slice_id in record.dismissed()) == is_dismissal:
            already = "dismissed already" if is_dismissal else "not dismissed"
            raise DataError(f"The slice is {already}.", given=made.slice_id)
        return prove(workspace, add_decisions(record, [made]), by=made.by)

    return _change(workspace, run_id, made.slice_id, change)


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

    return _replace(workspace, run_id, [slice_id], rebuild, by=by)


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

    return _replace(workspace, run_id, [slice_id], rebuild, by=by)


def merge(workspace: Workspace, run_id: str, asked: Merging, *, by: str) -> ChangedSlice:
    """Make one slice of two of the same class, with the members of either or of both; it takes their place.

    Raises:
        DataError: if they are of different classes, or were found on different halves.
    """

    def rebuild(_record: RunRecord, one: FailureSlice, other: FailureSlice) -> FailureSlice:
        return _merge(workspace, one, other, asked)

    how = "Either of" if asked.how == "either" else "Both of"
    return _replace(workspace, run_id, [asked.first, asked.second], rebuild, by=by, how=how)


def columns_of(workspace: Workspace, record: RunRecord, found: FailureSlice) -> list[ColumnValues]:
    """Return the columns by whose values a slice can be narrowed, with what its members hold on the half that people look at."""
    seen = look_at(workspace, record, found)
    columns = [_column_values(name, seen) for name in seen.samples.dataset.metadata_names]
    return [column for column in columns if column is not None]


def _column_values(name: str, seen: LookedAt) -> ColumnValues | None:
    """Return what members hold in a column, None if it has too many different values or only one."""
    column = seen.samples.dataset.metadata(name)
    if pa.types.is_nested(column.type):
        return None
    coded = column.take(seen.problem.rows).combine_chunks().dictionary_encode()
    values = coded.dictionary.to_pylist()
    if not 1 < len(values) <= MAX_COLUMN_VALUES:
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
    return ChangedSlice(run_id=record.run_id, line=slice_line(record, slice_of(record, slice_id)))


def _change(workspace: Workspace, run_id: str, slice_id: str, change: Change) -> ChangedSlice:
    return changed_slice(change_run(workspace, change, run_id=run_id), slice_id)


def _replace(
    workspace: Workspace,
    run_id: str,
    slice_ids: Sequence[str],
    rebuild: Rebuild,
    *,
    by: str,
    how: str = "",
) -> ChangedSlice:
    """Put a slice in the place of one or two others, and prove the run anew.

    Args:
        workspace: the project.
        run_id: which run.
        slice_ids: the slices whose place it takes.
        rebuild: makes it of the run and of them.
        by: who asked for it.
        how: of merged ones, what it holds of them.
    """
    made: list[str] = []

    def change(record: RunRecord) -> RunRecord:
        old = [slice_of(record, slice_id) for slice_id in slice_ids]
        new = rebuild(record, *old)
        if not how and new.slice_id in slice_ids:
            raise DataError(
                "Nothing would change: the same samples belong to it.", given=new.slice_id
            )
        made.append(new.slice_id)
        decisions = [decision(new.slice_id, DecisionKind.ACCEPTED, by=by)]
        if how:
            reason = f"{how} {' and '.join(f'“{title_with_method(one)}”' for one in old)}"
            decisions.append(decision(new.slice_id, DecisionKind.MERGED, by=by, reason=reason))
        return _with_in_place(workspace, record, new, old, decisions, by=by)

    changed = change_run(workspace, change, run_id=run_id)
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
    dismissed, decided = record.dismissed(), list(decisions)
    if new.slice_id in dismissed:
        decided.append(decision(new.slice_id, DecisionKind.RESTORED, by=by))
    reason = f"Replaced by “{title_with_method(new)}”"
    decided += [
        decision(one.slice_id, DecisionKind.DISMISSED, by=by, reason=reason)
        for one in old
        if one.slice_id not in dismissed and one.slice_id != new.slice_id
    ]
    known = {found.slice_id for found in record.slices}
    counted = new.model_copy(update={"n_found": look_at(workspace, record, new).counts[1]})
    slices = record.slices if new.slice_id in known else (*record.slices, counted)
    return prove(
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


METHOD = "selection"
MIN_PICKED = 5
N_PARTS = 5
MAX_FITTED = 20_000
PENALTIES = (0.001, 0.01, 0.1, 1.0)


class Agreement(View):
    """How well a rule finds the samples that were picked, on samples that took no part in fitting it.

    Args:
        precision: share of its members that were picked.
        recall: share of the picked ones that are members.
    """

    precision: float
    recall: float


class SliceFromRows(ChangedSlice):
    """What became of samples that a person picked out.

    Args:
        n_picked: picked samples that were used: of the class, on the half that people look at, with an embedding.
        n_left_out: picked samples that were not.
        agreement: how well the rule finds them.
    """

    n_picked: int
    n_left_out: int
    agreement: Agreement


def slice_from_rows(workspace: Workspace, asked: PickedRows, *, by: str) -> SliceFromRows:
    """Make a slice of picked samples and prove it with all others of the newest run.

    Raises:
        DataError: if there is no such class, or row numbers refer to tables that the project no longer has.
        NotEnoughDataError: if too few samples were picked or left, or nothing tells them apart.
    """
    if asked.tables not in ("", workspace.tables_key):
        raise DataError(
            "The samples of the project have changed since this page was opened.",
            fix="Load the page again.",
        )
    problem, embeddings = workspace.class_embeddings(asked.title)
    picked = np.isin(problem.rows, np.asarray(asked.rows, dtype=np.int64))
    n_picked = int(picked.sum())
    if min(n_picked, len(picked) - n_picked) < MIN_PICKED:
        raise NotEnoughDataError(
            f"{n_picked} of {len(picked)} samples of {asked.title!r} on the half to look at were picked; at least {MIN_PICKED} "
            "must be picked and as many left.",
            fix="Pick more samples of this class.",
        )
    rule, is_found = _separate(workspace, problem, embeddings, picked)
    found = FailureSlice(
        class_name=problem.class_name,
        side=problem.side,
        rule=rule,
        method=METHOD,
        parameters={"n_picked": n_picked},
        found_on=workspace.discovery_use,
        n_found=int(rule.members(workspace.discovery, problem.rows).sum()),
        names=(spoken_name(workspace, problem.class_name, problem.side, asked.words),),
    )
    record = with_slices(workspace, [found], by=by)
    return SliceFromRows(
        **dict(changed_slice(record, found.slice_id)),
        n_picked=n_picked,
        n_left_out=len(set(asked.rows)) - n_picked,
        agreement=_agreement(is_found, picked),
    )


def _agreement(found: BoolArray, picked: BoolArray) -> Agreement:
    both = int((found & picked).sum())
    return Agreement(
        precision=both / max(1, int(found.sum())), recall=both / max(1, int(picked.sum()))
    )


def _separate(
    workspace: Workspace, problem: ClassProblem, embeddings: FloatArray, picked: BoolArray
) -> tuple[LinearRule, BoolArray]:
    """Return the rule that tells picked samples from the others, and which samples it finds without having seen them.

    Ridge regression on the picks, each side weighing the same; the penalty is the one that does best on samples left out of the
    fit, and the threshold is chosen on the scores of samples left out, because those of fitted samples lie too far apart.
    """
    draws = generator(workspace.project.settings.seed, METHOD)
    parts = part_numbers(picked, problem.groups, draws)
    fitted = _at_most(picked, MAX_FITTED, draws)
    best: tuple[float, float, float, BoolArray] | None = None
    for penalty in PENALTIES:
        scores = np.empty(len(picked))
        for part in range(N_PARTS):
            used = fitted & (parts != part)
            direction, offset = _ridge(embeddings[used], picked[used], penalty)
            scores[parts == part] = embeddings[parts == part] @ direction + offset
        cut = separating_cut(scores, picked, min_inside=MIN_PICKED)
        if cut is None:
            continue
        strength = association(picked, scores >= cut)
        if best is None or strength > best[0] + 1e-9:
            best = strength, penalty, cut, scores >= cut
    if best is None or best[0] <= 0:
        raise NotEnoughDataError(
            "Nothing in the embeddings tells these samples from the rest of their class.",
            fix="Pick samples that look alike.",
        )
    direction, offset = _ridge(embeddings[fitted], picked[fitted], best[1])
    rule = LinearRule(
        space=CLIP,
        encoder_id=workspace.discovery.space(CLIP).encoder_id,
        direction=tuple(direction.astype(np.float32).tolist()),
        offset=offset,
        threshold=best[2],
    )
    return rule, best[3]


def _ridge(embeddings: FloatArray, picked: BoolArray, penalty: float) -> tuple[DoubleArray, float]:
    weights = np.where(picked, 0.5 / max(1, picked.sum()), 0.5 / max(1, (~picked).sum()))
    centre = weights @ embeddings
    centred = (embeddings - centre).astype(np.float64)
    wanted = np.where(picked, 1.0, -1.0)
    products = (centred * weights[:, None]).T @ centred
    ridge = penalty * np.trace(products) / len(products) + 1e-12
    direction = np.linalg.solve(
        products + ridge * np.eye(len(products)), centred.T @ (weights * wanted)
    )
    return direction, -float(direction @ centre)


def part_numbers(
    picked: BoolArray, groups: IntArray | None, draws: np.random.Generator
) -> IntArray:
    """Return the part of every sample [n]; groups stay whole, unless the picked samples are all of one."""
    are_several = groups is not None and len(np.unique(groups[picked])) > 1
    return even_parts(picked, groups if are_several else None, draws)


def even_parts(
    is_first: BoolArray, groups: IntArray | None, draws: np.random.Generator
) -> IntArray:
    """Return the part of every sample [n], with samples of both kinds spread evenly among the parts; groups stay whole."""
    if groups is not None:
        from weakspot.core.kernels import fold_numbers

        found: IntArray = fold_numbers(is_first, draws.permutation(len(is_first)), N_PARTS, groups)[
            0
        ]
        return found
    parts = np.empty(len(is_first), dtype=np.int64)
    for side in (is_first, ~is_first):
        own = np.flatnonzero(side)
        parts[draws.permutation(own)] = np.arange(len(own)) % N_PARTS
    return parts


def _at_most(picked: BoolArray, most: int, draws: np.random.Generator) -> BoolArray:
    """Return which samples are fitted on: all, or as many of either side as there is time for."""
    used = np.ones(len(picked), dtype=np.bool_)
    for side in (picked, ~picked):
        own = np.flatnonzero(side)
        used[draws.permutation(own)[most // 2 :]] = False
    return used


UNDONE = "Undone"


def names_of_slice(record: RunRecord, slice_id: str) -> list[dict[str, JsonValue]]:
    """Return the names of a slice as they can be kept."""
    return [one.model_dump(mode="json") for one in slice_of(record, slice_id).names]


def give_names_back(
    workspace: Workspace,
    run_id: str,
    slice_id: str,
    names: Sequence[dict[str, JsonValue]],
    *,
    by: str,
) -> None:
    """Give a slice the names that it had."""

    def change(record: RunRecord) -> RunRecord:
        found = slice_of(record, slice_id)
        before = "" if found.name is None else f"Before: “{found.name.contrast}”"
        had = tuple(SliceName.model_validate(one) for one in names)
        decided = decision(
            slice_id, DecisionKind.RENAMED, by=by, reason=f"{UNDONE}. {before}".strip()
        )
        renamed = replace_slice(record, found.model_copy(update={"names": had}))
        return add_decisions(renamed, [decided])

    change_run(workspace, change, run_id=run_id)


def swap_slices(
    workspace: Workspace, run_id: str, *, back: Sequence[str], away: Sequence[str], by: str
) -> None:
    """Take slices back, and set others aside, in one step; what is already so stays so."""

    def change(record: RunRecord) -> RunRecord:
        known = {found.slice_id for found in record.slices}
        dismissed = set(record.dismissed())
        decided = [
            decision(one, DecisionKind.RESTORED, by=by, reason=UNDONE)
            for one in back
            if one in known & dismissed
        ]
        decided += [
            decision(one, DecisionKind.DISMISSED, by=by, reason=UNDONE)
            for one in away
            if one in known - dismissed
        ]
        return prove(workspace, add_decisions(record, decided), by=by)

    change_run(workspace, change, run_id=run_id)
