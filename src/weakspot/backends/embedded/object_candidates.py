"""Patch tokens of an image to regions that may be its object.

Every way of parting the grid proposes regions: normalised cuts of the similarity of tokens at several thresholds, and the distance
of tokens from those at the border of the image. Which region is the object is for `mask_gate` to say.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from scipy import ndimage
from scipy.linalg import eigh

from weakspot.core.arrays import BoolArray, FloatArray, unit_rows

THRESHOLDS = (0.2, 0.35, 0.5)
N_CUTS = 2
WEAK_LINK = 1e-5
FEWEST_CELLS = 3
MOST_SHARE = 0.9
SAME_REGION = 0.92
FINER = 4
_N_LEVELS = 12


@dataclass(frozen=True, kw_only=True, eq=False)
class Region:
    """A part of the grid that may be the object.

    Args:
        cells: which cells belong to it [side, side].
        strength: how clearly each belongs to it, above zero inside, at most 1 [side, side].
        order: which cut it comes from: 0 for the first of a threshold, 1 for the second, N_CUTS for the distance from the border.
    """

    cells: BoolArray
    strength: FloatArray
    order: int


def candidate_regions(tokens: FloatArray) -> tuple[FloatArray, list[Region]]:
    """Return the similarity of all cells [n, n], and the regions that may be the object, each once.

    Args:
        tokens: one a cell of a square grid [n, d], row by row.
    """
    unit = unit_rows(tokens)
    similarity = np.asarray(unit @ unit.T, dtype=np.float32)
    side = round(len(tokens) ** 0.5)
    found: list[Region] = []
    for order, values in _maps(similarity, side):
        for region in _pieces(values.reshape(side, side), order):
            if all(_overlap(region.cells, other.cells) < SAME_REGION for other in found):
                found.append(region)
    return similarity, found


def _maps(similarity: FloatArray, side: int) -> Iterator[tuple[int, FloatArray]]:
    for threshold in THRESHOLDS:
        vectors = _cuts(similarity, threshold)
        for order in range(N_CUTS):
            values = vectors[:, order] - vectors[:, order].mean()
            yield order, values
            yield order, -values
    distance = 1.0 - similarity[:, border_cells(side)].mean(axis=1)
    yield N_CUTS, distance - _valley(distance)


def _cuts(similarity: FloatArray, threshold: float) -> FloatArray:
    """Return the generalised eigenvectors [n, N_CUTS] of the graph of similar cells, after the constant one."""
    links = np.where(similarity > threshold, 1.0, WEAK_LINK).astype(np.float64)
    scale = 1.0 / np.sqrt(links.sum(axis=1))
    laplacian = np.eye(len(links)) - scale[:, None] * links * scale[None, :]
    _, vectors = eigh(laplacian, subset_by_index=[1, N_CUTS])
    vectors = vectors * scale[:, None]
    signs = np.sign(vectors[np.abs(vectors).argmax(axis=0), np.arange(N_CUTS)])
    return np.asarray(vectors * signs, dtype=np.float32)


def _valley(values: FloatArray) -> float:
    """Return the level that parts values best (Otsu)."""
    levels = np.quantile(values, np.linspace(0.05, 0.95, 2 * _N_LEVELS))

    def between(level: float) -> float:
        above = values > level
        if above.all() or not above.any():
            return 0.0
        share = float(above.mean())
        return share * (1 - share) * float(values[above].mean() - values[~above].mean()) ** 2

    return float(max(levels.tolist(), key=between))


def _pieces(values: FloatArray, order: int) -> Iterator[Region]:
    top = float(values.max())
    if top <= 0:
        return
    labels, n_pieces = ndimage.label(values > 0)
    for number in range(1, n_pieces + 1):
        cells = ndimage.binary_fill_holes(labels == number)
        if FEWEST_CELLS <= cells.sum() <= MOST_SHARE * cells.size:
            strength = np.where((labels > 0) & (labels != number), -0.5, values / top)
            strength = np.where(cells & (strength <= 0), 0.1, strength)
            yield Region(
                cells=np.asarray(cells),
                strength=np.clip(strength, -1.0, 1.0).astype(np.float32),
                order=order,
            )


def border_cells(side: int) -> BoolArray:
    """Return which cells of a grid, row by row, lie on its border."""
    border = np.ones((side, side), dtype=np.bool_)
    border[1:-1, 1:-1] = False
    return border.ravel()


def _overlap(first: BoolArray, second: BoolArray) -> float:
    return float((first & second).sum() / max(1, (first | second).sum()))
