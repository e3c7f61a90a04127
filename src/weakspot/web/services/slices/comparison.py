"""A slice on another project's classifier: which projects there are, and what was found when they were compared."""

import hashlib
from collections.abc import Mapping
from pathlib import Path

from pydantic import JsonValue, ValidationError

from weakspot.compare.across import SliceDifference, SliceOnModel
from weakspot.compare.comparison import Comparison
from weakspot.core.errors import DataError
from weakspot.core.evidence import Interval, Share
from weakspot.store import atomic
from weakspot.store.project import ProjectStore
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
    if other not in {folder.resolve().name for folder in workspace.others}:
        raise DataError(
            "There is no such project to compare with.",
            given=other,
            fix="Start `weakspot serve` with --compare.",
        )
    comparison = comparison_with(workspace.project.store, other)
    if comparison is None:
        raise DataError("The two were not compared yet.", given=other, fix="Compare them first.")
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
        raise DataError(
            "There is no such project to compare with.",
            given=name,
            fix="Start `weakspot serve` with --compare.",
        )
    return Path(found)


def keep_comparison(store: ProjectStore, name: str, comparison: Comparison) -> None:
    path = comparison_file(store, name)
    path.parent.mkdir(parents=True, exist_ok=True)
    atomic.write_bytes(path, comparison.model_dump_json(indent=1).encode())


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
        sentence=_sentence(own, other),
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


def _sentence(own: SliceOnModel, other: SliceOnModel) -> str:
    if own.holds and other.holds:
        return f"Both classifiers fail more often here than on the rest of the class: it is not a weakness of {own.model} alone."
    if own.holds:
        return f"{other.model} is not shown to fail more often here than on the rest of the class; {own.model} is."
    if other.holds:
        return f"On the shared samples only {other.model} is shown to fail more often here than on the rest of the class."
    return "On the shared samples neither is shown to fail more often here than on the rest of the class."
