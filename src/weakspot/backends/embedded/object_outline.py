"""A rough region to the object's own outline: GrabCut within a band around it, then soft edges that follow the image."""

from dataclasses import dataclass

import cv2
import numpy as np
from scipy import ndimage

from weakspot.core.arrays import BoolArray, ByteArray, FloatArray

WORKING_SIDE = 176
BAND = 0.75
DEEPEST = 0.14
N_ROUNDS = 3
SEED_OF_COLOUR_MODELS = 7
SMALLEST = 24
REGULARITY = 4e-4
INSIDE = 0.5


@dataclass(frozen=True, kw_only=True, eq=False)
class Outlined:
    """What became of a region.

    Args:
        rough: the region itself at working size [h, w].
        exact: the object within its outline at working size [h, w].
        largest: share of what GrabCut found that hangs together; the rest is dropped.
    """

    rough: BoolArray
    exact: BoolArray
    largest: float


def working_pixels(pixels: ByteArray) -> ByteArray:
    """Return an image at the size outlines are looked for."""
    height, width = pixels.shape[:2]
    factor = min(1.0, WORKING_SIDE / max(height, width))
    size = (max(8, round(width * factor)), max(8, round(height * factor)))
    return np.asarray(cv2.resize(pixels, size, interpolation=cv2.INTER_AREA), dtype=np.uint8)


def outlined(small: ByteArray, strength: FloatArray) -> Outlined:
    """Return the object that a region of a grid means.

    Args:
        small: the image at working size [h, w, 3].
        strength: how clearly each cell of the grid belongs to the object, above zero inside [n, n].
    """
    height, width = small.shape[:2]
    smooth = cv2.resize(strength, (width, height), interpolation=cv2.INTER_CUBIC)
    rough, _ = largest_piece(smooth > 0)
    if rough.sum() < SMALLEST or rough.all():
        return Outlined(rough=rough, exact=rough, largest=1.0)
    found, share = largest_piece(_grabbed(small, rough, cell=max(height, width) / len(strength)))
    if found.sum() < SMALLEST:
        return Outlined(rough=rough, exact=rough, largest=0.0)
    return Outlined(rough=rough, exact=np.asarray(ndimage.binary_fill_holes(found)), largest=share)


def _grabbed(small: ByteArray, rough: BoolArray, *, cell: float) -> BoolArray:
    """Return what belongs to the object by its colours, if what is deep inside does and what is far outside does not."""
    region = rough.astype(np.uint8)
    inwards = max(1, round(min(BAND * cell, DEEPEST * float(np.sqrt(region.sum())))))
    outwards = max(2, round(BAND * cell))
    labels = np.full(rough.shape, cv2.GC_BGD, dtype=np.uint8)
    labels[cv2.dilate(region, brush(outwards)) > 0] = cv2.GC_PR_BGD
    labels[rough] = cv2.GC_PR_FGD
    labels[cv2.erode(region, brush(inwards)) > 0] = cv2.GC_FGD
    if not (labels == cv2.GC_BGD).any() or not (labels == cv2.GC_PR_BGD).any():
        return rough
    cv2.setRNGSeed(SEED_OF_COLOUR_MODELS)
    models = np.zeros((1, 65)), np.zeros((1, 65))
    cv2.grabCut(small, labels, None, *models, N_ROUNDS, cv2.GC_INIT_WITH_MASK)
    found = np.isin(labels, (cv2.GC_FGD, cv2.GC_PR_FGD)).astype(np.uint8)
    return np.asarray(cv2.morphologyEx(found, cv2.MORPH_OPEN, brush(1)) > 0)


def largest_piece(found: BoolArray) -> tuple[BoolArray, float]:
    """Return the largest piece that hangs together, and the share of all that it holds."""
    labels, n_pieces = ndimage.label(found)
    if n_pieces == 0:
        return found, 0.0
    areas = np.bincount(labels.ravel())[1:]
    return np.asarray(labels == 1 + int(areas.argmax())), float(areas.max() / areas.sum())


def softened(pixels: ByteArray, exact: BoolArray) -> FloatArray:
    """Return the coverage at full size [h, w], 0 to 1: soft where the outline is, following the edges of the image."""
    height, width = pixels.shape[:2]
    rough = cv2.resize(exact.astype(np.float32), (width, height), interpolation=cv2.INTER_LINEAR)
    radius = max(2, round(1.5 * max(height, width) / WORKING_SIDE))
    guide = pixels.astype(np.float32).mean(axis=2) / 255.0
    soft = _guided(guide, rough, radius=radius)
    sharpened = np.clip((soft - 0.25) / 0.5, 0.0, 1.0)
    region = (rough > INSIDE).astype(np.uint8)
    near = cv2.dilate(region, brush(radius + 1)) > 0
    deep = cv2.erode(region, brush(2 * radius)) > 0
    return np.asarray(np.where(deep, 1.0, np.where(near, sharpened, 0.0)), dtype=np.float32)


def _guided(guide: FloatArray, rough: FloatArray, *, radius: int) -> FloatArray:
    """Return the rough mask as a locally linear function of the guide (the guided filter)."""
    window = (2 * radius + 1, 2 * radius + 1)

    def mean(values: FloatArray) -> FloatArray:
        return np.asarray(cv2.blur(values, window), dtype=np.float32)

    mean_guide, mean_rough = mean(guide), mean(rough)
    slope = (mean(guide * rough) - mean_guide * mean_rough) / (
        mean(guide * guide) - mean_guide**2 + REGULARITY
    )
    return np.asarray(mean(slope) * guide + mean(mean_rough - slope * mean_guide), dtype=np.float32)


def brush(radius: int) -> ByteArray:
    size = 2 * radius + 1
    return np.asarray(cv2.getStructuringElement(cv2.MORPH_ELLIPSE, (size, size)), dtype=np.uint8)
