"""How well a region fits the object of an image, learnt from photographs whose true masks are known.

Two small networks estimate the overlap with the true mask (intersection over union): one of a region of the token grid, which
chooses among regions, and one of the finished mask, which is its quality. `tools/learn_mask_gate.py` teaches both.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Self

import cv2
import numpy as np
from scipy import ndimage

from weakspot.backends.embedded.object_candidates import N_CUTS, Region, border_cells
from weakspot.backends.embedded.object_outline import Outlined, brush
from weakspot.core.arrays import AnyArray, BoolArray, ByteArray, FloatArray, unit_rows
from weakspot.core.errors import ModelError
from weakspot.core.projection import read_arrays

GATE_PATH = Path(__file__).parent / "weights" / "object_masks.npz"
COLOUR_SCALE = 50.0
CORE_DEPTH = 0.6
_FIX = "Reinstall weakspot, or teach it again with tools/learn_mask_gate.py."


@dataclass(frozen=True, kw_only=True, eq=False)
class Estimator:
    """A network with one hidden layer, from figures of a region to the overlap with the truth.

    Args:
        mean: of the figures [f].
        spread: of the figures [f].
        hidden: weights [f, h].
        hidden_bias: [h].
        out: weights [h].
        out_bias: [1].
    """

    mean: FloatArray
    spread: FloatArray
    hidden: FloatArray
    hidden_bias: FloatArray
    out: FloatArray
    out_bias: FloatArray

    @classmethod
    def of(cls, arrays: Mapping[str, AnyArray], name: str) -> Self:
        return cls(**{field: arrays[f"{name}_{field}"] for field in cls.__dataclass_fields__})

    def __call__(self, figures: FloatArray) -> FloatArray:
        """Return the estimated overlap [n] of figures [n, f], from 0 to 1."""
        standard = (figures - self.mean) / self.spread
        active = np.tanh(standard @ self.hidden + self.hidden_bias)
        return np.asarray(np.clip(active @ self.out + self.out_bias, 0.0, 1.0), dtype=np.float32)


@dataclass(frozen=True, kw_only=True, eq=False)
class MaskGate:
    """What was learnt of masks.

    Args:
        choice: estimates the overlap of a region of the grid.
        quality: estimates the overlap of a finished mask.
        least_quality: estimated overlap from which on a mask is used.
        known: mean token of the known image, for the self-test.
    """

    choice: Estimator
    quality: Estimator
    least_quality: float
    known: FloatArray

    @classmethod
    def load(cls, path: Path = GATE_PATH) -> Self:
        """Read what was learnt.

        Raises:
            ModelError: if the file is missing or holds something else.
        """
        arrays = read_arrays(path)
        try:
            return cls(
                choice=Estimator.of(arrays, "choice"),
                quality=Estimator.of(arrays, "quality"),
                least_quality=float(arrays["least_quality"]),
                known=np.asarray(arrays["known"], dtype=np.float32),
            )
        except KeyError as error:
            raise ModelError(
                f"The file of the mask gate lacks {error}.", where=str(path), fix=_FIX
            ) from error


@dataclass(frozen=True, kw_only=True, eq=False)
class Look:
    """An image as its regions are judged.

    Args:
        whole: similarity of every cell to the token of the whole image [n].
        similarity: of cells to each other [n, n].
        colours: of cells, as CIE Lab [side, side, 3].
    """

    whole: FloatArray
    similarity: FloatArray
    colours: FloatArray

    @classmethod
    def of(cls, tokens: FloatArray, similarity: FloatArray, pixels: ByteArray) -> Self:
        """Return the look of an image from its tokens, the first of which is of the whole image, and its pixels."""
        unit = unit_rows(tokens)
        side = round((len(tokens) - 1) ** 0.5)
        small = cv2.resize(pixels, (side, side), interpolation=cv2.INTER_AREA)
        return cls(whole=np.asarray(unit[1:] @ unit[0]), similarity=similarity, colours=_lab(small))


def region_figures(look: Look, region: Region) -> FloatArray:
    """Return what the choice among regions goes by [f]."""
    cells, side = region.cells, len(region.cells)
    inside = cells.ravel()
    ring = np.asarray(ndimage.binary_dilation(cells) & ~cells)
    around = ring.ravel() if ring.any() else ~inside
    border = border_cells(side)
    rows, columns = np.nonzero(cells)
    middle, half = (side - 1) / 2, side / 2
    down, across = (rows.mean() - middle) / half, (columns.mean() - middle) / half
    height, width = np.ptp(rows) + 1, np.ptp(columns) + 1
    similarity, whole = look.similarity, look.whole
    within = similarity[np.ix_(inside, inside)].mean()
    nearby = similarity[np.ix_(inside, around)].mean()
    tones = [look.colours.reshape(-1, 3)[part].mean(axis=0) for part in (inside, ~inside, around)]
    orders = [float(region.order == order) for order in range(N_CUTS + 1)]
    figures = [
        inside.mean(),
        np.sqrt(inside.mean()),
        abs(down),
        abs(across),
        np.hypot(down, across),
        ((rows - middle) ** 2 + (columns - middle) ** 2).mean() / half**2,
        (inside & border).sum() / border.sum(),
        cells[[0, 0, -1, -1], [0, -1, 0, -1]].sum(),
        inside.sum() / (height * width),
        max(height, width) / side,
        within,
        similarity[np.ix_(inside, ~inside)].mean(),
        similarity[np.ix_(~inside, ~inside)].mean(),
        nearby,
        within - nearby,
        whole[inside].mean(),
        whole[~inside].mean(),
        whole[inside].max(),
        np.linalg.norm(tones[0] - tones[1]) / COLOUR_SCALE,
        np.linalg.norm(tones[0] - tones[2]) / COLOUR_SCALE,
        ndimage.binary_erosion(cells).sum() / inside.sum(),
        *orders,
    ]
    return np.array(figures, dtype=np.float32)


def mask_figures(small: ByteArray, found: Outlined) -> FloatArray:
    """Return what the quality of a finished mask goes by, beside the figures of its region [f]."""
    exact = found.exact
    mask = exact.astype(np.uint8)
    outlines, _ = cv2.findContours(mask, cv2.RETR_EXTERNAL, cv2.CHAIN_APPROX_NONE)
    outline = max(outlines, key=len)
    hull = cv2.contourArea(cv2.convexHull(outline))
    contrast, clearness, likeness = _edges(_lab(small), exact)
    union = (exact | found.rough).sum()
    figures = [
        exact.mean(),
        found.largest,
        (exact & found.rough).sum() / max(1, union),
        exact.sum() / max(1, found.rough.sum()),
        cv2.contourArea(outline) / hull if hull > 0 else 0.0,
        _contact(exact),
        contrast / COLOUR_SCALE,
        min(clearness, 8.0),
        likeness,
    ]
    return np.array(figures, dtype=np.float32)


def _contact(exact: BoolArray) -> float:
    """Return the share of the border of the image that the object covers."""
    return float(exact.ravel()[_edge_of(exact.shape)].mean())


def _edge_of(shape: tuple[int, ...]) -> BoolArray:
    border = np.ones(shape, dtype=np.bool_)
    border[1:-1, 1:-1] = False
    return border.ravel()


def _edges(lab: FloatArray, exact: BoolArray) -> tuple[float, float, float]:
    """Return the colour distance across the outline, how much stronger edges are on it than inside, and the colours in common."""
    mask = exact.astype(np.uint8)
    inner, outer = cv2.erode(mask, brush(2)), cv2.dilate(mask, brush(2))
    inside = (inner > 0) & (cv2.erode(mask, brush(7)) == 0)
    outside = (cv2.dilate(mask, brush(7)) > 0) & (outer == 0)
    depth = cv2.distanceTransform(mask, cv2.DIST_L2, 3)
    core = depth > CORE_DEPTH * depth.max()
    if not (inside.any() and outside.any() and core.any()):
        return 0.0, 0.0, 1.0
    contrast = float(np.linalg.norm(lab[inside].mean(axis=0) - lab[outside].mean(axis=0)))
    smooth = cv2.GaussianBlur(lab, (0, 0), 1.2)
    steps = cv2.Sobel(smooth, cv2.CV_32F, 1, 0) ** 2 + cv2.Sobel(smooth, cv2.CV_32F, 0, 1) ** 2
    strength = np.sqrt(steps.sum(axis=2))
    on_outline = (outer > 0) & (inner == 0)
    clearness = float(strength[on_outline].mean() / max(1e-3, float(strength[core].mean())))
    return contrast, clearness, _likeness(lab, exact, outside)


def _likeness(lab: FloatArray, exact: BoolArray, outside: BoolArray) -> float:
    """Return the intersection of the colour histograms of an object and of what is around it."""
    steps = np.floor(lab / np.array([20.0, 10.0, 10.0])).astype(np.int64)
    _, colours = np.unique(steps.reshape(-1, 3), axis=0, return_inverse=True)
    colours = colours.ravel()
    shares = [
        np.bincount(colours[part.ravel()], minlength=int(colours.max()) + 1) / part.sum()
        for part in (exact, outside)
    ]
    return float(np.minimum(*shares).sum())


def _lab(pixels: ByteArray) -> FloatArray:
    return np.asarray(
        cv2.cvtColor(pixels.astype(np.float32) / 255.0, cv2.COLOR_RGB2LAB), dtype=np.float32
    )
