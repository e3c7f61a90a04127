"""Two things beside each other: slices of a run, a slice on two classifiers, and classifiers of two projects.

Images are of the samples that people may look at; figures of slices are those of their tests, and counts of two classifiers are of
all samples that both were measured on.
"""

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Literal

import numpy as np
import pyarrow as pa
from pydantic import JsonValue, StringConstraints, ValidationError

from weakspot.core.arrays import BoolArray, IntArray
from weakspot.core.errors import ConfigError, DataError
from weakspot.core.evidence import Interval, Share, sides_of
from weakspot.core.failures import class_problems
from weakspot.core.run import RunRecord, StageProgress
from weakspot.core.samples import SampleSet
from weakspot.core.slices import FailureSlice
from weakspot.core.statistics import mcnemar_p
from weakspot.project.comparison import (
    Comparison,
    SharedPredictions,
    SliceDifference,
    SliceOnModel,
    compare_projects,
)
from weakspot.project.project import Project
from weakspot.store import atomic
from weakspot.store.project import ProjectStore
from weakspot.web.services.images import ListedImage, list_images, visible_samples
from weakspot.web.services.map_colours import COLUMN, colourings
from weakspot.web.services.slices import SliceLine, slice_line
from weakspot.web.services.view import View, share_with
from weakspot.web.services.workspace import Workspace

FOLDER, PLACES = "comparisons", "projects.json"


class OtherModel(View):
    """A project that this one can be compared with.

    Args:
        name: name of its folder.
        n_samples: samples that both were measured on; null before they were compared.
        failure_rate: of this project's classifier on those.
        other_rate: of the other's.
        shared_failures: failures of both, as a part of the failures of either.
        slice_ids: slices that took part: those that were confirmed when the two were compared.
        notes: what could not be compared, and why.
    """

    name: str
    n_samples: int | None
    failure_rate: float | None
    other_rate: float | None
    shared_failures: float | None
    slice_ids: list[str]
    notes: list[str]


class OtherModels(View):
    """All projects that this one can be compared with; this one's own name is given as well."""

    name: str
    others: list[OtherModel]


class ModelOnSlice(View):
    """One classifier on one slice.

    Args:
        model: name of the project.
        inside: failures of members.
        outside: failures of the rest of the class.
        holds: whether the slice is a failure slice of this classifier.
        q_value: over all slices and classifiers of the comparison.
    """

    model: str
    inside: Share
    outside: Share
    holds: bool
    q_value: float


class SliceComparison(View):
    """A slice on two classifiers, on samples that were not used to find it.

    Args:
        own: this project's classifier.
        other: the other's.
        n_members: members that both were measured on.
        both_fail: members on which both fail.
        only_own_fails: members on which only this one fails.
        only_other_fails: members on which only the other fails.
        neither_fails: members on which neither fails.
        difference: failure rate of this one minus that of the other, among members.
        interval: of the difference.
        p_value: McNemar's exact test.
        sentence: what it means.
    """

    own: ModelOnSlice
    other: ModelOnSlice
    n_members: int
    both_fail: int
    only_own_fails: int
    only_other_fails: int
    neither_fails: int
    difference: float
    interval: Interval
    p_value: float
    sentence: str


def other_models(workspace: Workspace) -> OtherModels:
    known = {folder.resolve().name: folder.resolve() for folder in workspace.others}
    remember_places(workspace.project.store, known)
    own = workspace.project.folder.resolve().name
    return OtherModels(
        name=own, others=[_other(workspace.project.store, own, name) for name in known]
    )


def slice_comparison(workspace: Workspace, slice_id: str, other: str) -> SliceComparison:
    """Return a slice on another classifier.

    Raises:
        DataError: if there is no such project, it was not compared yet, or the slice took no part.
    """
    own = workspace.project.folder.resolve().name
    comparison = _comparison(workspace, other)
    on = {one.model: one for one in comparison.slices if one.slice_id == slice_id}
    pair = next(
        (
            one
            for one in comparison.differences
            if one.slice_id == slice_id and {one.first, one.second} == {own, other}
        ),
        None,
    )
    if own not in on or other not in on or pair is None:
        raise DataError(
            "This slice took no part in the comparison: only confirmed slices that nobody dismissed do.",
            given=slice_id,
            fix="Compare again if it was confirmed since.",
        )
    return _compare(on[own], on[other], pair if pair.first == own else _turn(pair))


def _comparison(workspace: Workspace, other: str) -> Comparison:
    if other not in {folder.resolve().name for folder in workspace.others}:
        raise _unknown(other)
    found = comparison_with(workspace.project.store, other)
    if found is None:
        raise _not_compared(other)
    return found


def _unknown(other: str) -> DataError:
    return DataError(
        "There is no such project to compare with.",
        given=other,
        fix="Start `weakspot serve` with --compare.",
    )


def _not_compared(other: str) -> DataError:
    return DataError("The two were not compared yet.", given=other, fix="Compare them first.")


def remember_places(store: ProjectStore, places: Mapping[str, Path]) -> None:
    """Write down where the projects to compare with are: work runs in a process of its own and gets their names only."""
    path = store.data / FOLDER / PLACES
    wanted: dict[str, JsonValue] = {name: str(place) for name, place in places.items()}
    if not wanted or (path.exists() and atomic.read_json(path) == wanted):
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    atomic.write_json(path, wanted)


def place_of(store: ProjectStore, name: str) -> Path:
    """Return where a project to compare with is.

    Raises:
        DataError: if there is none of that name.
    """
    path = store.data / FOLDER / PLACES
    found = atomic.read_json(path).get(name) if path.exists() else None
    if not isinstance(found, str):
        raise _unknown(name)
    return Path(found)


def comparison_with(store: ProjectStore, name: str) -> Comparison | None:
    """Return what the last comparison with a project brought, None if there was none or it cannot be read."""
    try:
        return Comparison.model_validate_json(comparison_file(store, name).read_bytes())
    except (OSError, ValidationError):
        return None


def comparison_file(store: ProjectStore, name: str) -> Path:
    """Return where the comparison with a project is kept."""
    return store.data / FOLDER / f"{hashlib.sha256(name.encode()).hexdigest()[:16]}.json"


def _other(store: ProjectStore, own: str, name: str) -> OtherModel:
    found = comparison_with(store, name)
    if found is None or own not in found.models or name not in found.models:
        return OtherModel(
            name=name,
            n_samples=None,
            failure_rate=None,
            other_rate=None,
            shared_failures=None,
            slice_ids=[],
            notes=[],
        )
    return OtherModel(
        name=name,
        n_samples=found.n_samples,
        failure_rate=found.failure_rates[own],
        other_rate=found.failure_rates[name],
        shared_failures=found.overlaps[found.models.index(own)][found.models.index(name)],
        slice_ids=list(
            dict.fromkeys(
                one.slice_id for one in found.differences if {one.first, one.second} == {own, name}
            )
        ),
        notes=list(found.notes),
    )


def _compare(own: SliceOnModel, other: SliceOnModel, pair: SliceDifference) -> SliceComparison:
    both = own.failures_inside - pair.only_first_fails
    return SliceComparison(
        own=_on_slice(own),
        other=_on_slice(other),
        n_members=pair.n_samples,
        both_fail=both,
        only_own_fails=pair.only_first_fails,
        only_other_fails=pair.only_second_fails,
        neither_fails=pair.n_samples - both - pair.only_first_fails - pair.only_second_fails,
        difference=pair.difference,
        interval=pair.interval,
        p_value=pair.p_value,
        sentence=_comparison_sentence(own, other),
    )


def _on_slice(one: SliceOnModel) -> ModelOnSlice:
    return ModelOnSlice(
        model=one.model,
        inside=share_with(one.failures_inside, one.n_inside, one.interval_inside),
        outside=share_with(one.failures_outside, one.n_outside, one.interval_outside),
        holds=one.holds,
        q_value=one.q_value,
    )


def _turn(pair: SliceDifference) -> SliceDifference:
    return pair.model_copy(
        update={
            "first": pair.second,
            "second": pair.first,
            "only_first_fails": pair.only_second_fails,
            "only_second_fails": pair.only_first_fails,
            "difference": -pair.difference,
            "interval": Interval(
                low=-pair.interval.high, high=-pair.interval.low, level=pair.interval.level
            ),
        }
    )


def _comparison_sentence(own: SliceOnModel, other: SliceOnModel) -> str:
    if own.holds and other.holds:
        return f"Both classifiers fail more often here than on the rest of the class: it is not a weakness of {own.model} alone."
    if own.holds:
        return f"{other.model} is not shown to fail more often here than on the rest of the class; {own.model} is."
    if other.holds:
        return f"On the shared samples only {other.model} is shown to fail more often here than on the rest of the class."
    return "On the shared samples neither is shown to fail more often here than on the rest of the class."


MAX_SHOWN = 24
MAX_VALUES = 10
MIN_SHARE_GAP = 0.1


Belonging = Literal["both", "first", "second"]
"""Which of two slices an image belongs to."""


class SharedPart(View):
    """Images that belong to both slices, or to one of them alone.

    Args:
        which: to which of them.
        failed: how many of them fail.
        images: some of them, failures first.
    """

    which: Belonging
    failed: Share
    images: tuple[ListedImage, ...]


class ValueOfTwo(View):
    """A value that members of one slice have more often than those of the other."""

    column: str
    value: str
    first: Share
    second: Share


class SlicePair(View):
    """Two slices of a run.

    Args:
        run_id: which run.
        tables: what row numbers belong to.
        first: the one, as in the table of slices.
        second: the other.
        overlap: members of both as a part of the members of either; null if there are none.
        parts: images of both, of the first alone, of the second alone.
        values: what sets their members apart, largest difference first.
        first_rule: who belongs to the first.
        second_rule: who belongs to the second.
        sentence: how they lie to each other, in words.
    """

    run_id: str
    tables: str
    first: SliceLine
    second: SliceLine
    overlap: float | None
    parts: tuple[SharedPart, ...]
    values: tuple[ValueOfTwo, ...]
    first_rule: str
    second_rule: str
    sentence: str


def slice_pair(
    workspace: Workspace, record: RunRecord, first: FailureSlice, second: FailureSlice
) -> SlicePair:
    """Return two slices of a run beside each other."""
    samples = _looked_at(workspace, record)
    failed = np.zeros(len(samples.dataset), dtype=np.bool_)
    members = [_members(workspace, samples, one, failed) for one in (first, second)]
    rows: dict[Belonging, IntArray] = {
        "both": np.flatnonzero(members[0] & members[1]),
        "first": np.flatnonzero(members[0] & ~members[1]),
        "second": np.flatnonzero(members[1] & ~members[0]),
    }
    n_either = sum(len(one) for one in rows.values())
    return SlicePair(
        run_id=record.run_id,
        tables=workspace.tables_key,
        first=slice_line(record, first),
        second=slice_line(record, second),
        overlap=len(rows["both"]) / n_either if n_either else None,
        parts=tuple(_shared_part(workspace, which, found, failed) for which, found in rows.items()),
        values=_values(workspace, samples, *(np.flatnonzero(one) for one in members)),
        first_rule=first.rule.sentence,
        second_rule=second.rule.sentence,
        sentence=_overlap_sentence(first, second, rows),
    )


def _looked_at(workspace: Workspace, record: RunRecord) -> SampleSet:
    rows = workspace.discovery.rows
    if workspace.project.settings.verify.scheme == "cross-fit":
        rows = np.sort(np.concatenate([rows, workspace.confirmation.rows]))
    return workspace.samples_for(record).only(rows, name=workspace.discovery.name)


def _members(
    workspace: Workspace, samples: SampleSet, found: FailureSlice, failed: BoolArray
) -> BoolArray:
    """Return which rows of the data set are members; their failures are noted."""
    sides = sides_of(
        found, samples, class_problems(samples.dataset, samples.rows, workspace.criterion)
    )
    members = np.zeros(len(samples.dataset), dtype=np.bool_)
    if sides.problem is not None:
        members[sides.problem.rows[sides.inside]] = True
        failed[sides.problem.rows[sides.problem.failed]] = True
    return members


def _shared_part(
    workspace: Workspace, which: Belonging, rows: IntArray, failed: BoolArray
) -> SharedPart:
    ordered = rows[np.argsort(~failed[rows], kind="stable")]
    return SharedPart(
        which=which,
        failed=Share.of(int(failed[rows].sum()), len(rows)),
        images=tuple(list_images(workspace, ordered[:MAX_SHOWN])),
    )


def _values(
    workspace: Workspace, samples: SampleSet, first: IntArray, second: IntArray
) -> tuple[ValueOfTwo, ...]:
    if not len(first) or not len(second):
        return ()
    found: list[ValueOfTwo] = []
    for choice in colourings(workspace).colourings:
        if not choice.by.startswith(COLUMN):
            continue
        column = samples.dataset.metadata(choice.title)
        if pa.types.is_floating(column.type):
            continue
        sides = [_texts(column.take(pa.array(rows))) for rows in (first, second)]
        for value in sorted({*sides[0], *sides[1]} - {None}, key=str):
            shares = [Share.of(side.count(value), len(side)) for side in sides]
            if abs(shares[0].value - shares[1].value) >= MIN_SHARE_GAP:
                found.append(
                    ValueOfTwo(
                        column=choice.title, value=str(value), first=shares[0], second=shares[1]
                    )
                )
    return tuple(
        sorted(found, key=lambda one: -abs(one.first.value - one.second.value))[:MAX_VALUES]
    )


def _texts(column: pa.ChunkedArray) -> list[str | None]:
    return [None if value is None else str(value) for value in column.to_pylist()]


def _overlap_sentence(
    first: FailureSlice, second: FailureSlice, rows: dict[Belonging, IntArray]
) -> str:
    both, alone, other = (len(rows[which]) for which in ("both", "first", "second"))
    if first.class_name != second.class_name:
        return "They are of different classes, so they share no image."
    if not both:
        return "They share no image."
    if not alone or not other:
        outer = second.title if not alone else first.title
        return (
            "They hold the same images."
            if not alone and not other
            else f"One lies inside the other: its images are all in “{outer}” too."
        )
    return f"They share {both} images; {alone} are in the first alone, {other} in the second alone."


IDS, OWN, OTHER, ANSWERS = "ids", "own", "other", "answers"


class ImageOfTwo(ListedImage):
    """An image, and what the other classifier answers; empty if that is not known."""

    other_answer: str


class FailurePart(View):
    """Samples on which both classifiers fail, or one alone.

    Args:
        which: `both`, `own` or `other`.
        n_samples: how many there are among all that both were measured on.
        n_visible: how many of them people may look at.
        images: some of these.
    """

    which: str
    n_samples: int
    n_visible: int
    images: tuple[ImageOfTwo, ...]


class ComparedSlice(View):
    """A slice on both classifiers."""

    slice_id: str
    title: str
    compared: SliceComparison


class TwoModels(View):
    """Two classifiers on the samples that they share.

    Args:
        own: name of this project.
        other: name of the other.
        tables: what row numbers belong to.
        own_failed: how often this project's classifier fails.
        other_failed: how often the other does.
        overlap: failures of both as a part of the failures of either.
        p_value: McNemar's exact test of the failures of one alone against those of the other alone.
        parts: failures of both, of this one alone, of the other alone.
        slices: confirmed slices of this project on both, largest difference first.
        notes: what could not be compared, and why.
    """

    own: str
    other: str
    tables: str
    own_failed: Share
    other_failed: Share
    overlap: float | None
    p_value: float
    parts: tuple[FailurePart, ...]
    slices: tuple[ComparedSlice, ...]
    notes: tuple[str, ...]


def two_models(workspace: Workspace, other: str) -> TwoModels:
    """Return two classifiers beside each other.

    Raises:
        DataError: if there is no such project, or the two were not compared yet.
    """
    found = _comparison(workspace, other)
    columns = _read(comparison_file(workspace.project.store, other).with_suffix(".npz"))
    if columns is None:
        raise _not_compared(other)
    own_failed, other_failed = columns[OWN], columns[OTHER]
    parts = {
        "both": own_failed & other_failed,
        "own": own_failed & ~other_failed,
        "other": other_failed & ~own_failed,
    }
    n_either = int((own_failed | other_failed).sum())
    return TwoModels(
        own=workspace.project.folder.resolve().name,
        other=other,
        tables=workspace.tables_key,
        own_failed=Share.of(int(own_failed.sum()), len(own_failed)),
        other_failed=Share.of(int(other_failed.sum()), len(other_failed)),
        overlap=int(parts["both"].sum()) / n_either if n_either else None,
        p_value=mcnemar_p(int(parts["own"].sum()), int(parts["other"].sum())),
        parts=tuple(
            _failure_part(workspace, which, inside, columns) for which, inside in parts.items()
        ),
        slices=_slices(workspace, found, other),
        notes=found.notes,
    )


def _failure_part(
    workspace: Workspace, which: str, inside: BoolArray, columns: Mapping[str, BoolArray]
) -> FailurePart:
    places = np.flatnonzero(inside)
    said = dict(zip(columns[IDS][places].tolist(), columns[ANSWERS][places].tolist(), strict=True))
    rows = _visible_rows(workspace, said)
    shown = np.array([rows[one] for one in list(rows)[:MAX_SHOWN]], dtype=np.int64)
    images = [
        ImageOfTwo(**dict(one), other_answer=said[one.sample_id])
        for one in list_images(workspace, shown)
    ]
    return FailurePart(
        which=which, n_samples=len(places), n_visible=len(rows), images=tuple(images)
    )


def _visible_rows(workspace: Workspace, wanted: Mapping[str, str]) -> dict[str, int]:
    """Return the rows of the samples among some that people may look at, by id."""
    seen = visible_samples(workspace)
    ids = workspace.once(
        "ids of visible samples", lambda: workspace.samples.dataset.sample_ids(seen.rows)
    )
    return {one: row for one, row in zip(ids, seen.rows.tolist(), strict=True) if one in wanted}


def _slices(workspace: Workspace, found: Comparison, other: str) -> tuple[ComparedSlice, ...]:
    own = workspace.project.folder.resolve().name
    titles = {one.slice_id: one.title for one in found.slices}
    owners = {one.slice_id for one in found.differences if {one.first, one.second} == {own, other}}
    compared = [
        ComparedSlice(
            slice_id=slice_id,
            title=titles[slice_id],
            compared=slice_comparison(workspace, slice_id, other),
        )
        for slice_id in titles
        if slice_id in owners
    ]
    return tuple(sorted(compared, key=lambda one: -abs(one.compared.difference)))


def _read(path: Path) -> dict[str, BoolArray] | None:
    try:
        with np.load(path, allow_pickle=False) as file:
            return {name: file[name] for name in (IDS, OWN, OTHER, ANSWERS)}
    except (OSError, ValueError, KeyError):
        return None


PATIENCE_SECONDS = 60.0
ProjectName = Annotated[str, StringConstraints(min_length=1, max_length=255)]


def compare(
    project: Project, progress: StageProgress, *, other: ProjectName
) -> dict[str, JsonValue]:
    """Compare with another project, and keep what came out.

    Args:
        project: this one.
        progress: called with the stage.
        other: the other one's name; `serve --compare` names its folder.

    Raises:
        ConfigError: if it is called like this one.
        DataError: if there is none of that name, or the two share no samples or classes.
    """
    place = place_of(project.store, other)
    own = project.folder.resolve()
    if own.name == place.name:
        raise ConfigError(
            "Two projects of the same name cannot be distinguished.",
            given=other,
            fix="Rename one of the folders.",
        )
    seen: list[SharedPredictions] = []
    comparison = compare_projects([own, place], progress=progress, watch=seen.append)
    ((sample_ids, shared, answers),) = seen
    with project.store.writing(patience=PATIENCE_SECONDS):
        path = comparison_file(project.store, other)
        path.parent.mkdir(parents=True, exist_ok=True)
        atomic.write_bytes(path, comparison.model_dump_json(indent=1).encode())
        # On which samples each of the two fails, beside their comparison.
        unfinished = path.with_suffix(".new.npz")
        np.savez_compressed(
            unfinished,
            ids=np.array(sample_ids, dtype=np.str_),
            own=shared[own.name],
            other=shared[place.name],
            answers=np.array(answers[place.name], dtype=np.str_),
        )
        unfinished.replace(path.with_suffix(".npz"))
    return {
        "other": other,
        "n_samples": comparison.n_samples,
        "n_slices": len({one.slice_id for one in comparison.slices}),
    }
