"""The map: samples that people may look at, in two dimensions; a layout at once, and a slower one as work.

Shown are the discovery half and, as its surroundings, training and pool samples; the confirmation half and the test split never
are. Everything about the points stands in the order of the rows of the map.
"""

import hashlib
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
from pydantic import JsonValue

from weakspot.core.arrays import (
    AnyArray,
    ByteArray,
    FloatArray,
    IntArray,
    child_seed,
    generator,
    unit_rows,
)
from weakspot.core.errors import NotEnoughDataError, StoreError
from weakspot.core.run import StageProgress
from weakspot.core.samples import SampleSet
from weakspot.models.loading import require_library
from weakspot.project.project import Project
from weakspot.run.preparation import CLIP, FEATURES
from weakspot.store import atomic
from weakspot.store.array_files import mapped
from weakspot.store.project import ProjectStore
from weakspot.web.services.images import PARTS, ListedImage, in_order, list_images, rows_by_part
from weakspot.web.services.view import FLOAT32, INT32, UINT8, View, pack
from weakspot.web.services.workspace import Workspace

PCA, UMAP = "pca", "umap"
MAX_PCA_SAMPLES = 20_000
CHUNK_ROWS = 20_000
FRAME = 1.04
EDGE_QUANTILE = 0.998
MAPS_FOLDER = "maps"
PATIENCE_SECONDS = 5.0
_KEPT = np.dtype([("row", "<i4"), ("place", "<f4", (2,))])


@dataclass(frozen=True, kw_only=True, eq=False)
class Layout:
    """Samples in the plane.

    Args:
        rows: rows of the data set, ascending [n].
        places: where they are [n, 2], from -1 to 1.
    """

    rows: IntArray
    places: FloatArray


class LayoutFiles:
    """Finished layouts on disk: one of each kind, written in one step, so that a restart finds them.

    Args:
        store: the project.
    """

    def __init__(self, store: ProjectStore) -> None:
        self._store = store
        self._folder = store.data / MAPS_FOLDER

    def load(self, kind: str, key: str) -> Layout | None:
        """Return a layout that was made before of the same samples and embeddings, None if there is none that is whole."""
        path = self._path(kind, key)
        if not path.exists():
            return None
        try:
            kept = mapped(path)
        except StoreError:
            return None
        if kept.dtype != _KEPT or kept.ndim != 1:
            return None
        return Layout(
            rows=kept["row"].astype(np.int64),
            places=np.ascontiguousarray(kept["place"], dtype=np.float32),
        )

    def has(self, kind: str, key: str) -> bool:
        return self._path(kind, key).exists()

    def save(self, kind: str, key: str, layout: Layout) -> None:
        """Keep a layout; the one of the same kind that was kept before is removed.

        Raises:
            StoreError: if another process writes to the project all the time.
        """
        kept = np.empty(len(layout.rows), dtype=_KEPT)
        kept["row"], kept["place"] = layout.rows, layout.places
        path = self._path(kind, key)
        with self._store.writing(patience=PATIENCE_SECONDS):
            self._folder.mkdir(parents=True, exist_ok=True)
            with atomic.replacing(path) as temporary, temporary.open("wb") as stream:
                np.save(stream, kept)
            for other in self._folder.glob(f"{kind}-*.npy"):
                if other != path:
                    other.unlink(missing_ok=True)

    def _path(self, kind: str, key: str) -> Path:
        return self._folder / f"{kind}-{key}.npy"


def principal_layout(samples: SampleSet, space: str, rows: IntArray, *, seed: int) -> Layout:
    """Return samples along the two directions in which their unit vectors differ most; those without an embedding are left out.

    The directions are found on some of the samples; all are then projected piece by piece, so that memory does not grow with them.

    Args:
        samples: has the embeddings.
        space: which embeddings.
        rows: rows of the data set, ascending.
        seed: chooses which samples the directions are found on.
    """
    if not len(rows):
        return Layout(rows=rows, places=np.zeros((0, 2), dtype=np.float32))
    fitted = rows
    if len(rows) > MAX_PCA_SAMPLES:
        fitted = np.sort(generator(seed, "map", PCA).choice(rows, MAX_PCA_SAMPLES, replace=False))
    mean, axes = principal_axes(_finite(samples.embeddings(space, fitted)), 2)
    places = np.concatenate(
        [(unit_rows(piece) - mean) @ axes.T for piece in pieces_of(samples, space, rows)]
    )
    known = np.isfinite(places).all(axis=1)
    return Layout(rows=rows[known], places=frame(places[known]))


def reduced_embeddings(
    samples: SampleSet, space: str, rows: IntArray, *, dimension: int, seed: int
) -> FloatArray:
    """Return unit vectors [n, d] turned so that what differs most comes first, cut to so many numbers; rows need embeddings."""
    fitted = np.sort(
        generator(seed, "map", "reduce").choice(
            rows, min(len(rows), MAX_PCA_SAMPLES), replace=False
        )
    )
    _, axes = principal_axes(
        _finite(samples.embeddings(space, fitted)), dimension, is_centred=False
    )
    pieces = [unit_rows(piece) @ axes.T for piece in pieces_of(samples, space, rows)]
    return np.ascontiguousarray(np.concatenate(pieces), dtype=np.float32)


def principal_axes(
    embeddings: FloatArray, most: int, *, is_centred: bool = True
) -> tuple[FloatArray, FloatArray]:
    """Return the mean [d] of unit vectors [n, d] and their main directions [most, d] at most, the first one first.

    Directions have a sign that does not depend on the machine: their largest part is positive.
    """
    from scipy.linalg import eigh

    values = unit_rows(embeddings)
    if not len(values):
        return np.zeros(values.shape[1], dtype=np.float32), np.zeros(
            (most, values.shape[1]), dtype=np.float32
        )
    mean = values.mean(axis=0) if is_centred else np.zeros(values.shape[1], dtype=np.float32)
    centred = values - mean
    width = values.shape[1]
    kept = min(most, width)
    axes = eigh(
        np.asarray(centred.T @ centred, dtype=np.float64), subset_by_index=[width - kept, width - 1]
    )[1].T[::-1]
    signs = np.sign(axes[np.arange(kept), np.abs(axes).argmax(axis=1)])
    turned = np.zeros((most, width), dtype=np.float32)
    turned[:kept] = axes * signs[:, None]
    return mean.astype(np.float32), turned


def frame(places: AnyArray) -> FloatArray:
    """Return places [n, 2] moved and scaled, both axes alike, into -1 to 1; the few that lie far out come to the edge.

    >>> frame(np.array([[0.0, 0.0], [2.0, 1.0]])).round(2).tolist()
    [[-0.9599999785423279, -0.47999998927116394], [0.9599999785423279, 0.47999998927116394]]
    """
    if not len(places):
        return np.zeros((0, 2), dtype=np.float32)
    values = np.asarray(places, dtype=np.float64)
    low, high = (
        np.quantile(values, level, axis=0, method="nearest")
        for level in (1 - EDGE_QUANTILE, EDGE_QUANTILE)
    )
    reach = float(np.max(high - low)) / 2
    scaled = (values - (low + high) / 2) / (reach * FRAME if reach > 0 else 1.0)
    return np.asarray(np.clip(scaled, -1.0, 1.0), dtype=np.float32)


def pieces_of(samples: SampleSet, space: str, rows: IntArray) -> Iterator[FloatArray]:
    """Yield the embeddings of rows piece by piece, in order."""
    for start in range(0, len(rows), CHUNK_ROWS):
        yield samples.embeddings(space, rows[start : start + CHUNK_ROWS])


def _finite(embeddings: FloatArray) -> FloatArray:
    return np.asarray(embeddings[np.isfinite(embeddings).all(axis=1)])


LayoutName = Literal["pca", "umap"]
MAX_POINTS = 200_000
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


def map_plan(workspace: Workspace) -> MapPlan:
    return workspace.once("map plan", lambda: _plan(workspace))


def map_layout(workspace: Workspace, name: str = PCA) -> Layout | None:
    """Return a layout of the map; PCA is made if need be, UMAP is None until work has made it."""
    plan, files = map_plan(workspace), LayoutFiles(workspace.project.store)
    if name != PCA:
        return files.load(name, plan.key)
    return workspace.once(
        "map layout", lambda: files.load(PCA, plan.key) or _make_layout(workspace, plan, files)
    )


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


def map_sample(workspace: Workspace, row: int) -> ListedImage | None:
    """Return a sample of the map, None if the row is not on it."""
    if row not in map_rows(workspace):
        return None
    return list_images(workspace, np.array([row]))[0]


def _plan(workspace: Workspace) -> MapPlan:
    samples, seed = workspace.samples, workspace.project.settings.seed
    space = next((name for name in (CLIP, FEATURES) if name in samples.spaces), None)
    groups = rows_by_part(workspace)
    draws, room, chosen = generator(seed, "map", "points"), MAX_POINTS, []
    surroundings = sum(len(rows) for rows in groups[1:])
    for place, rows in enumerate(groups):
        share = room if place == 0 or surroundings <= room else int(room * len(rows) / surroundings)
        chosen.append(draws.choice(rows, share, replace=False) if len(rows) > share else rows)
        room -= len(chosen[0]) if place == 0 else 0
    rows, parts = in_order(chosen)
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
        f"at most {MAX_POINTS:,}, chosen at random, always the same"
        if sum(plan.totals) > MAX_POINTS
        else "those with an embedding"
    )
    return f"Shown are {parts}: {why}."


MAX_UMAP_SAMPLES = 50_000
DIMENSION = 50
N_NEIGHBOURS = 15
MIN_POINTS = 8
TRANSFORMED_AT_ONCE = 10_000
STARTING_WIDTH = 10.0
SMALL = 10_000
STAGE = "lay out samples"


def lay_out(
    project: Project, progress: StageProgress, *, layout: Literal["umap"] = "umap"
) -> dict[str, JsonValue]:
    """Make the UMAP layout of the map and keep it; if it is there already, nothing is done.

    Args:
        project: the project.
        progress: called with how many samples have their place.
        layout: the only one that is made as work.

    Raises:
        MissingExtraError: if umap-learn is not installed.
        NotEnoughDataError: if no sample has an embedding.
    """
    workspace = Workspace(project)
    plan, start, files = map_plan(workspace), map_layout(workspace, PCA), LayoutFiles(project.store)
    if plan.space is None or start is None or not len(start.rows):
        raise NotEnoughDataError(
            "No sample has an embedding, so there is nothing to lay out.", fix="weakspot embed"
        )
    n_points, was_there = len(start.rows), files.load(UMAP, plan.key) is not None
    if not was_there:
        progress(STAGE, 0, n_points)
        embeddings = reduced_embeddings(
            workspace.samples, plan.space, start.rows, dimension=DIMENSION, seed=project.settings.seed
        )  # fmt: skip
        places = umap_places(
            embeddings,
            start.places,
            seed=project.settings.seed,
            report=lambda done: progress(STAGE, done, n_points),
        )
        files.save(UMAP, plan.key, Layout(rows=start.rows, places=frame(places)))
    progress(STAGE, n_points, n_points)
    return {"layout": layout, "n_points": n_points, "was_there": was_there}


def umap_places(
    embeddings: FloatArray, start: FloatArray, *, seed: int, report: Callable[[int], None]
) -> FloatArray:
    """Return places [n, 2] at which samples stand beside those that are similar; the same every time.

    Args:
        embeddings: [n, d].
        start: where samples stand at first [n, 2], so that large distances mean something too.
        seed: of the project.
        report: called with how many samples have their place.
    """
    if len(embeddings) < MIN_POINTS:
        return start
    umap = _quiet_umap()
    fitted = np.arange(len(embeddings))
    if len(embeddings) > MAX_UMAP_SAMPLES:
        fitted = np.sort(
            generator(seed, "map", UMAP).choice(len(embeddings), MAX_UMAP_SAMPLES, replace=False)
        )
    jitter = generator(seed, "map", "start").normal(scale=1e-3, size=(len(fitted), 2))
    model = umap.UMAP(
        n_neighbors=min(N_NEIGHBOURS, len(fitted) - 1),
        min_dist=0.1,
        metric="cosine",
        init=np.asarray(STARTING_WIDTH * start[fitted] + jitter, dtype=np.float32),
        n_epochs=300 if len(fitted) <= SMALL else 200,
        random_state=child_seed(seed, "map", UMAP) % (1 << 31),
        n_jobs=1,
        low_memory=True,
    )
    places = np.empty((len(embeddings), 2), dtype=np.float32)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        places[fitted] = model.fit_transform(embeddings[fitted])
        report(len(fitted))
        others = np.setdiff1d(np.arange(len(embeddings)), fitted)
        for first in range(0, len(others), TRANSFORMED_AT_ONCE):
            chosen = others[first : first + TRANSFORMED_AT_ONCE]
            places[chosen] = model.transform(embeddings[chosen])
            report(len(fitted) + first + len(chosen))
    return np.where(np.isfinite(places), places, 0.0).astype(np.float32)


def _quiet_umap() -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return require_library("umap", extra="web", purpose="UMAP layouts")
