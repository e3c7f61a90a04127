"""The object of an image: the best region of its patch tokens, looked at again from nearer by, then its outline."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from PIL import Image

from weakspot.backends.embedded.mask_gate import Look, MaskGate, mask_figures, region_figures
from weakspot.backends.embedded.object_candidates import Region, candidate_regions
from weakspot.backends.embedded.object_outline import Outlined, outlined, softened, working_pixels
from weakspot.core.arrays import BoolArray, ByteArray, FloatArray

MARGIN = 0.22
NEAR_ENOUGH = 0.9
LEAST_WINDOW = 32

TokensOf = Callable[[Image.Image], FloatArray]
Window = tuple[int, int, int, int]


@dataclass(frozen=True, kw_only=True, eq=False)
class Seen:
    """One look at an image or at a window of it.

    Args:
        regions: what may be the object.
        figures: what is known of each [m, f].
    """

    regions: tuple[Region, ...]
    figures: FloatArray


@dataclass(frozen=True, kw_only=True, eq=False)
class Found:
    """An object.

    Args:
        window: top, left, bottom, right of the part of the image it was found in.
        outline: of the object within the window.
        figures: what its quality is estimated from [f].
    """

    window: Window
    outline: Outlined
    figures: FloatArray

    def coverage(self, pixels: ByteArray) -> FloatArray:
        """Return how much of each pixel of the image is object [h, w]."""
        top, left, bottom, right = self.window
        whole = np.zeros(pixels.shape[:2], dtype=np.float32)
        whole[top:bottom, left:right] = softened(pixels[top:bottom, left:right], self.outline.exact)
        return whole


def seen(pixels: ByteArray, tokens_of: TokensOf) -> Seen:
    """Return the regions of an image that may be its object."""
    tokens = tokens_of(Image.fromarray(pixels))
    similarity, regions = candidate_regions(tokens[1:])
    look = Look.of(tokens, similarity, pixels)
    figures = [region_figures(look, region) for region in regions]
    return Seen(
        regions=tuple(regions),
        figures=np.stack(figures) if figures else np.zeros((0, 0), dtype=np.float32),
    )


def found_object(pixels: ByteArray, tokens_of: TokensOf, gate: MaskGate) -> Found | None:
    """Return the object of an image [h, w, 3], or None where nothing stands out."""
    first = seen(pixels, tokens_of)
    if not first.regions:
        return None
    scores = gate.choice(first.figures)
    best = int(scores.argmax())
    whole = (0, 0, *pixels.shape[:2])
    window = window_around(first.regions[best].cells, pixels.shape)
    chosen, figures, agreement, score = first.regions[best], first.figures[best], 1.0, scores[best]
    if window is None:
        window = whole
    else:
        top, left, bottom, right = window
        second = seen(np.ascontiguousarray(pixels[top:bottom, left:right]), tokens_of)
        expected = _cells_within(first.regions[best].cells, window, pixels.shape)
        if second.regions:
            overlaps = np.array([_overlap(one.cells, expected) for one in second.regions])
            again = gate.choice(second.figures) + overlaps
            nearer = int(again.argmax())
            chosen, figures, agreement = (
                second.regions[nearer],
                second.figures[nearer],
                float(overlaps[nearer]),
            )
            score = gate.choice(second.figures[nearer : nearer + 1])[0]
        else:
            window = whole
    top, left, bottom, right = window
    small = working_pixels(np.ascontiguousarray(pixels[top:bottom, left:right]))
    outline = outlined(small, chosen.strength)
    if not outline.exact.any():
        return None
    known = [scores[best], np.sort(scores)[-2:].mean(), score, agreement]
    return Found(
        window=window,
        outline=outline,
        figures=np.concatenate(
            [figures, mask_figures(small, outline), np.array(known, dtype=np.float32)]
        ),
    )


def window_around(cells: BoolArray, shape: tuple[int, ...]) -> Window | None:
    """Return the part of an image around a region, with a margin; None if that is nearly all of it, or too little to look at."""
    height, width = shape[:2]
    side = len(cells)
    rows, columns = np.flatnonzero(cells.any(axis=1)), np.flatnonzero(cells.any(axis=0))
    top, bottom = rows[0] / side * height, (rows[-1] + 1) / side * height
    left, right = columns[0] / side * width, (columns[-1] + 1) / side * width
    length = max(bottom - top, right - left) * (1 + 2 * MARGIN)
    if length >= NEAR_ENOUGH * max(height, width) or length < LEAST_WINDOW:
        return None
    down, across = _fitted(top, bottom, length, height), _fitted(left, right, length, width)
    return down[0], across[0], down[1], across[1]


def _fitted(start: float, end: float, length: float, limit: int) -> tuple[int, int]:
    size = min(length, limit)
    first = min(max(0.5 * (start + end - size), 0), limit - size)
    return round(first), round(first + size)


def _cells_within(cells: BoolArray, window: Window, shape: tuple[int, ...]) -> BoolArray:
    """Return a region of the grid of an image on the grid of a window of it."""
    side = len(cells)
    top, left, bottom, right = window
    places = (np.arange(side) + 0.5) / side
    rows = ((top + places * (bottom - top)) / shape[0] * side).astype(np.int64)
    columns = ((left + places * (right - left)) / shape[1] * side).astype(np.int64)
    return np.asarray(cells[np.ix_(np.minimum(rows, side - 1), np.minimum(columns, side - 1))])


def _overlap(first: BoolArray, second: BoolArray) -> float:
    return float((first & second).sum() / max(1, (first | second).sum()))
