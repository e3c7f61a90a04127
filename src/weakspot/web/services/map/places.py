"""The map: samples that people may look at, in two dimensions.

Shown are the discovery half and, as its surroundings, training and pool samples; the confirmation half and the test split never
are. Everything about the points stands in the order of the rows of the map.
"""

import hashlib
import threading
from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from weakspot.core.arrays import AnyArray, ByteArray, IntArray
from weakspot.core.dataset import Split, Task
from weakspot.core.errors import StoreError
from weakspot.core.failures import class_problems, predicted_classes, predicted_labels
from weakspot.core.seeding import generator
from weakspot.pipeline.halves import used_rows
from weakspot.pipeline.preparation import CLIP, FEATURES
from weakspot.web.services.map.layouts import PCA, UMAP, Layout, LayoutFiles, principal_layout
from weakspot.web.services.view import FLOAT32, INT32, UINT8, View, pack
from weakspot.web.services.workspace import Workspace

LayoutName = Literal["pca", "umap"]
MOST_POINTS = 200_000
PARTS = ("discovery half", "training", "pool")
NO_EMBEDDINGS = (
    "There are no embeddings, so there is nothing to lay out. With images, run `weakspot embed`; a table alone has no map: "
    "look at slices and attributes instead."
)


class MapPartView(View):
    """How many samples of one kind are on the map, and how many there are."""

    name: str
    shown: int
    total: int


class MapView(View):
    """Where samples are.

    Args:
        map_id: the same for everything that stands in the same order of points.
        tables: what the row numbers belong to.
        layout: which layout this is.
        is_ready: whether it has been made; if not, there are no points.
        is_umap_ready: whether the other layout is there.
        n_points: how many points there are.
        positions: little-endian float32 [n, 2] from -1 to 1, base64.
        rows: little-endian int32 [n], base64.
        parts: uint8 [n], base64: the place in `part_counts`.
        part_counts: what is shown.
        note: what to know, in words; empty if nothing.
    """

    map_id: str
    tables: str
    layout: LayoutName
    is_ready: bool
    is_umap_ready: bool
    n_points: int
    positions: str
    rows: str
    parts: str
    part_counts: tuple[MapPartView, ...]
    note: str


class MapSampleView(View):
    """One sample in words.

    Args:
        row: of the project's tables.
        label: its true label or labels.
        answer: what the classifier answered.
        is_failure: whether that is a failure; None if nothing is known.
        part: what the sample is for.
    """

    row: int
    label: str
    answer: str
    is_failure: bool | None
    part: str


@dataclass(frozen=True, kw_only=True, eq=False)
class MapPlan:
    """Which samples are on the map.

    Args:
        rows: rows of the data set, ascending [n].
        parts: places in `PARTS` [n].
        totals: how many samples of each part there are.
        space: which embeddings are laid out; None if there are none.
        key: changes whenever a layout would.
    """

    rows: IntArray
    parts: ByteArray
    totals: tuple[int, ...]
    space: str | None
    key: str


@dataclass(eq=False)
class _Kept:
    """Layouts in memory; only one thread makes them."""

    guard: threading.Lock = field(default_factory=threading.Lock)
    layouts: dict[str, Layout] = field(default_factory=dict)


def map_plan(workspace: Workspace) -> MapPlan:
    return workspace.once("map plan", lambda: _plan(workspace))


def map_layout(workspace: Workspace, name: str = PCA) -> Layout | None:
    """Return a layout of the map; PCA is made if need be, UMAP is None until work has made it."""
    plan = map_plan(workspace)
    kept = workspace.once("map layouts", _Kept)
    if name in kept.layouts:
        return kept.layouts[name]
    with kept.guard:
        if name not in kept.layouts:
            files = LayoutFiles(workspace.project.store)
            found = files.load(name, plan.key) or (
                _make_layout(workspace, plan, files) if name == PCA else None
            )
            if found is None:
                return None
            kept.layouts[name] = found
        return kept.layouts[name]


def map_rows(workspace: Workspace) -> IntArray:
    layout = map_layout(workspace)
    return np.zeros(0, dtype=np.int64) if layout is None else layout.rows


def map_parts(workspace: Workspace) -> ByteArray:
    """Return for every point its place in `PARTS`."""
    plan = map_plan(workspace)
    return np.asarray(plan.parts[np.searchsorted(plan.rows, map_rows(workspace))], dtype=np.uint8)


def map_view(workspace: Workspace, name: LayoutName = "pca") -> MapView:
    plan = map_plan(workspace)
    layout = map_layout(workspace, name)
    parts = map_parts(workspace)
    counts = np.bincount(parts, minlength=len(PARTS)).tolist()
    shown = tuple(
        MapPartView(name=part, shown=counts[place], total=plan.totals[place])
        for place, part in enumerate(PARTS)
    )
    is_umap_ready = name == UMAP and layout is not None
    return MapView(
        map_id=plan.key,
        tables=workspace.tables_key,
        layout=name,
        is_ready=layout is not None,
        is_umap_ready=is_umap_ready or LayoutFiles(workspace.project.store).has(UMAP, plan.key),
        n_points=0 if layout is None else len(layout.rows),
        positions="" if layout is None else pack(layout.places, FLOAT32),
        rows="" if layout is None else pack(layout.rows, INT32),
        parts="" if layout is None else pack(parts, UINT8),
        part_counts=shown,
        note=_note(plan, shown),
    )


def map_sample(workspace: Workspace, row: int) -> MapSampleView | None:
    """Return a sample of the map in words, None if the row is not on it."""
    rows = map_rows(workspace)
    place = int(np.searchsorted(rows, row))
    if place >= len(rows) or rows[place] != row:
        return None
    return describe_samples(workspace, rows[place : place + 1])[0]


def describe_samples(workspace: Workspace, rows: IntArray) -> tuple[MapSampleView, ...]:
    dataset = workspace.samples.dataset
    labels, answers = _labels(workspace, rows), _answers(workspace, rows)
    places = np.searchsorted(map_plan(workspace).rows, rows)
    parts = map_plan(workspace).parts[places]
    failed: dict[int, bool] = {}
    for problem in (
        class_problems(dataset, rows, workspace.criterion) if dataset.has_predictions else ()
    ):
        for row, is_failure in zip(problem.rows.tolist(), problem.failed.tolist(), strict=True):
            failed[row] = failed.get(row, False) or is_failure
    return tuple(
        MapSampleView(
            row=row, label=label, answer=answer, is_failure=failed.get(row), part=PARTS[part]
        )
        for row, label, answer, part in zip(
            rows.tolist(), labels, answers, parts.tolist(), strict=True
        )
    )


def _plan(workspace: Workspace) -> MapPlan:
    samples, project = workspace.samples, workspace.project
    dataset, seed = samples.dataset, project.settings.seed
    space = next((name for name in (CLIP, FEATURES) if name in samples.spaces), None)
    taken = np.zeros(len(dataset), dtype=np.bool_)
    taken[used_rows(samples, project.settings)] = True
    groups = [
        workspace.discovery.rows,
        *(dataset.rows_of(split) for split in (Split.TRAIN, Split.POOL)),
    ]
    groups[1:] = [rows[~taken[rows]] for rows in groups[1:]]
    draws, room, chosen = generator(seed, "map", "points"), MOST_POINTS, []
    surroundings = sum(len(rows) for rows in groups[1:])
    for place, rows in enumerate(groups):
        share = room if place == 0 or surroundings <= room else int(room * len(rows) / surroundings)
        chosen.append(draws.choice(rows, share, replace=False) if len(rows) > share else rows)
        room -= len(chosen[0]) if place == 0 else 0
    rows = np.concatenate(chosen)
    parts = np.repeat(np.arange(len(chosen), dtype=np.uint8), [len(group) for group in chosen])
    order = np.argsort(rows, kind="stable")
    rows, parts = rows[order].astype(np.int64), parts[order]
    encoder = samples.space(space).encoder_id if space is not None else ""
    made_of = (
        f"{workspace.tables_key} {space} {encoder} {workspace.prepared.summary.n_embeddings} {seed}"
    )
    key = hashlib.sha256(
        made_of.encode() + rows.astype("<i8").tobytes() + parts.tobytes()
    ).hexdigest()[:24]
    totals = tuple(len(group) for group in groups)
    return MapPlan(rows=rows, parts=parts, totals=totals, space=space, key=key)


def _make_layout(workspace: Workspace, plan: MapPlan, files: LayoutFiles) -> Layout:
    if plan.space is None:
        return Layout(rows=np.zeros(0, dtype=np.int64), places=np.zeros((0, 2), dtype=np.float32))
    layout = principal_layout(
        workspace.samples, plan.space, plan.rows, seed=workspace.project.settings.seed
    )
    try:
        files.save(PCA, plan.key, layout)
    except (StoreError, OSError):
        # Somebody else writes for long, or the disk is full: the map is made again next time.
        return layout
    return layout


def _note(plan: MapPlan, shown: tuple[MapPartView, ...]) -> str:
    if plan.space is None:
        return NO_EMBEDDINGS
    if sum(part.shown for part in shown) == sum(part.total for part in shown):
        return ""
    parts = ", ".join(
        f"{part.shown:,} of {part.total:,} ({part.name})" for part in shown if part.total
    )
    why = (
        f"at most {MOST_POINTS:,}, chosen at random, always the same"
        if sum(plan.totals) > MOST_POINTS
        else "those with an embedding"
    )
    return f"Shown are {parts}: {why}."


def _labels(workspace: Workspace, rows: IntArray) -> list[str]:
    dataset = workspace.samples.dataset
    if dataset.task is Task.SINGLE_LABEL:
        return [
            dataset.class_names[code] if code >= 0 else "no label"
            for code in dataset.labels[rows].tolist()
        ]
    return _listed(dataset.label_matrix[rows], dataset.class_names)


def _answers(workspace: Workspace, rows: IntArray) -> list[str]:
    dataset = workspace.samples.dataset
    if not dataset.has_predictions:
        return ["not known"] * len(rows)
    if dataset.task is Task.SINGLE_LABEL:
        codes = predicted_classes(dataset, rows).tolist()
        return [dataset.class_names[code] if code >= 0 else "not known" for code in codes]
    return _listed(predicted_labels(dataset, rows), dataset.class_names)


def _listed(matrix: AnyArray, names: tuple[str, ...]) -> list[str]:
    return [", ".join(names[code] for code in np.flatnonzero(line)) or "none" for line in matrix]
