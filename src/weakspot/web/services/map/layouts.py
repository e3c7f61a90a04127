"""Samples in two dimensions: where they are kept, and the layout that is there at once."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from weakspot.core.arrays import AnyArray, FloatArray, IntArray, unit_rows
from weakspot.core.errors import StoreError
from weakspot.core.samples import SampleSet
from weakspot.core.seeding import generator
from weakspot.store import atomic
from weakspot.store.array_files import mapped
from weakspot.store.project import ProjectStore

PCA, UMAP = "pca", "umap"
MOST_FITTED = 20_000
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
    if len(rows) > MOST_FITTED:
        fitted = np.sort(generator(seed, "map", PCA).choice(rows, MOST_FITTED, replace=False))
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
        generator(seed, "map", "reduce").choice(rows, min(len(rows), MOST_FITTED), replace=False)
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
