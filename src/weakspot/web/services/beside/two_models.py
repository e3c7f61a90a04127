"""Two classifiers on one page: which failures they share and where they differ, images first.

Counts are of all samples that both were measured on; images only of those that people may look at.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from weakspot.core.arrays import BoolArray
from weakspot.core.errors import DataError
from weakspot.core.evidence import Share
from weakspot.core.statistics import mcnemar_p
from weakspot.store.project import ProjectStore
from weakspot.web.services.images.page import ListedImage, list_images
from weakspot.web.services.images.visible import visible_samples
from weakspot.web.services.slices.comparison import (
    SliceComparison,
    comparison_file,
    comparison_with,
    slice_comparison,
)
from weakspot.web.services.view import View
from weakspot.web.services.workspace import Workspace

MOST_SHOWN = 24
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


def keep_failures(
    store: ProjectStore,
    other: str,
    sample_ids: Sequence[str],
    failed: tuple[BoolArray, BoolArray],
    answers: Sequence[str],
) -> None:
    """Write down on which samples each of two classifiers fails, beside their comparison."""
    path = _path(store, other)
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_suffix(".new.npz")
    np.savez_compressed(
        unfinished,
        ids=np.array(sample_ids, dtype=np.str_),
        own=failed[0],
        other=failed[1],
        answers=np.array(answers, dtype=np.str_),
    )
    unfinished.replace(path)


def two_models(workspace: Workspace, other: str) -> TwoModels:
    """Return two classifiers beside each other.

    Raises:
        DataError: if there is no such project, or the two were not compared yet.
    """
    if other not in {folder.resolve().name for folder in workspace.others}:
        raise DataError(
            "There is no such project to compare with.",
            given=other,
            fix="Start `weakspot serve` with --compare.",
        )
    store = workspace.project.store
    found = comparison_with(store, other)
    columns = _read(_path(store, other))
    if found is None or columns is None:
        raise DataError("The two were not compared yet.", given=other, fix="Compare them first.")
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
        parts=tuple(_part(workspace, which, inside, columns) for which, inside in parts.items()),
        slices=_slices(workspace, other),
        notes=found.notes,
    )


def _part(
    workspace: Workspace, which: str, inside: BoolArray, columns: Mapping[str, BoolArray]
) -> FailurePart:
    places = np.flatnonzero(inside)
    said = dict(zip(columns[IDS][places].tolist(), columns[ANSWERS][places].tolist(), strict=True))
    rows = _visible_rows(workspace, said)
    shown = np.array([rows[one] for one in list(rows)[:MOST_SHOWN]], dtype=np.int64)
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


def _slices(workspace: Workspace, other: str) -> tuple[ComparedSlice, ...]:
    found = comparison_with(workspace.project.store, other)
    own = workspace.project.folder.resolve().name
    titles = {} if found is None else {one.slice_id: one.title for one in found.slices}
    owners = set() if found is None else {
        one.slice_id for one in found.differences if {one.first, one.second} == {own, other}
    }  # fmt: skip
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


def _path(store: ProjectStore, other: str) -> Path:
    return comparison_file(store, other).with_suffix(".npz")
