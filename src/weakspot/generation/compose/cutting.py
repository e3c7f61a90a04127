"""Cutting the object out of an image: by its mask, or by GrabCut from the middle outwards, with a check of what came out."""

from dataclasses import dataclass

import numpy as np

from weakspot.core.arrays import BoolArray, ByteArray, FloatArray

NOTHING_FOUND = "hardly anything was found"
LONGEST_SIDE = 112
LEAST_SPREAD = 2.0
N_ROUNDS = 3
FRAME = 0.04
MARGINS = (0.17, 0.26)
SEED_OF_COLOUR_MODELS = 7

LEAST_SHARE = 0.03
MOST_SHARE = 0.6
MOST_CONTACT = 0.06
LEAST_LARGEST = 0.75
LEAST_SOLIDITY = 0.42
LEAST_CONTRAST = 14.0
LEAST_OUTLINE = 2.0
MOST_LIKENESS = 0.35
LEAST_STABILITY = 0.7
MOST_ASIDE = 0.4
APPENDAGE = 0.28
CORE_DEPTH = 0.6
LIGHTNESS_STEP = 20.0
HUE_STEP = 10.0
LEAST_BODY = 0.9


@dataclass(frozen=True, kw_only=True)
class CutQuality:
    """How far a cut can be trusted.

    Args:
        share: of the image that the object covers.
        contact: share of the object's outline that lies on the edge of what could be object at all.
        largest: share of all that was found which the largest piece holds; the others are dropped.
        solidity: share of its convex hull that the object fills.
        contrast: distance of the mean colours on both sides of the outline, in Lab.
        likeness: share of their colours that object and surroundings have in common; one thing of many alike has much in common.
        outline: how much stronger edges are along the outline than inside; a heap of things has as many inside.
        aside: how far its centre is from the image's, as a share of the way to the edge.
        stability: overlap of two cuts that started differently (intersection over union).
    """

    share: float
    contact: float
    largest: float
    solidity: float
    contrast: float
    likeness: float
    outline: float
    aside: float = 0.0
    stability: float = 1.0

    def problem(self, *, least_outline: float = LEAST_OUTLINE) -> str:
        """Return why the cut is not to be used, empty if it may be."""
        checks = (
            (self.share < LEAST_SHARE, NOTHING_FOUND),
            (self.share > MOST_SHARE, "nearly the whole image was taken for the object"),
            (self.contact > MOST_CONTACT, "the object reaches beyond the edge"),
            (self.aside > MOST_ASIDE, "what stands out is not in the middle"),
            (self.largest < LEAST_LARGEST, "the object fell into pieces"),
            (self.solidity < LEAST_SOLIDITY, "the outline is frayed"),
            (self.contrast < LEAST_CONTRAST, "object and background have the same colours"),
            (self.likeness > MOST_LIKENESS, "there is more of the same around it"),
            (
                self.outline < least_outline,
                "the outline is no clearer than edges inside: a heap, or a part of something",
            ),
            (self.stability < LEAST_STABILITY, "two cuts that started differently disagree"),
        )
        return next((reason for fails, reason in checks if fails), "")


@dataclass(frozen=True, kw_only=True, eq=False)
class Cut:
    """An object, cut out.

    Args:
        pixels: the image that it is in [h, w, 3].
        alpha: how much of each pixel is object [h, w], 0 to 1, soft at the outline.
        quality: how far the cut can be trusted; None when a mask was given.
    """

    pixels: ByteArray
    alpha: FloatArray
    quality: CutQuality | None = None

    @property
    def box(self) -> tuple[int, int, int, int]:
        """Return top, left, bottom, right of the object."""
        rows, columns = (
            np.flatnonzero((self.alpha > 0.5).any(axis=1)),  # noqa: PLR2004
            np.flatnonzero((self.alpha > 0.5).any(axis=0)),  # noqa: PLR2004
        )
        return int(rows[0]), int(columns[0]), int(rows[-1]) + 1, int(columns[-1]) + 1


def cut_by_mask(pixels: ByteArray, mask: ByteArray) -> Cut | str:
    """Return the object under a mask [h, w] where white is the object, or why there is none."""
    import cv2

    height, width = pixels.shape[:2]
    fitted = cv2.resize(mask, (width, height), interpolation=cv2.INTER_AREA)
    is_object = fitted > 127  # noqa: PLR2004
    if not is_object.any():
        return "the mask is empty"
    return Cut(pixels=pixels, alpha=cv2.GaussianBlur(is_object.astype(np.float32), (0, 0), 0.8))


def cut_by_colours(pixels: ByteArray, *, least_outline: float = LEAST_OUTLINE) -> Cut | str:
    """Return the object in the middle of an image, or why what was found cannot be trusted.

    Two cuts are made, from a wide and from a narrow guess; the second is spared when the first fails by itself.
    """
    import cv2

    height, width = pixels.shape[:2]
    scale = min(1.0, LONGEST_SIDE / max(height, width))
    small = cv2.resize(
        pixels,
        (max(8, round(width * scale)), max(8, round(height * scale))),
        interpolation=cv2.INTER_AREA,
    )
    if small.std(axis=(0, 1)).max() < LEAST_SPREAD:
        return NOTHING_FOUND
    wide = _grab(small, MARGINS[0])
    quality = _quality(small, wide)
    if problem := quality.problem(least_outline=least_outline):
        return problem
    narrow = _grab(small, MARGINS[1])
    united = int(np.count_nonzero(wide | narrow))
    quality = _quality(small, wide, stability=int(np.count_nonzero(wide & narrow)) / max(1, united))
    if problem := quality.problem(least_outline=least_outline):
        return problem
    return Cut(
        pixels=pixels,
        alpha=_refine(pixels, _without_appendages(_largest_piece(wide)[0])),
        quality=quality,
    )


def _grab(pixels: ByteArray, margin: float) -> BoolArray:
    """Return what belongs to the object if most of the ellipse within a margin does; the frame of the image never does."""
    import cv2

    height, width = pixels.shape[:2]
    up, across = _frame(pixels.shape)
    labels = np.full((height, width), cv2.GC_BGD, dtype=np.uint8)
    labels[up : height - up, across : width - across] = cv2.GC_PR_BGD
    middle, axes = (
        (width // 2, height // 2),
        (round(width * (0.5 - margin)), round(height * (0.5 - margin))),
    )
    cv2.ellipse(labels, middle, axes, 0, 0, 360, int(cv2.GC_PR_FGD), -1)
    cv2.setRNGSeed(SEED_OF_COLOUR_MODELS)
    models = np.zeros((1, 65)), np.zeros((1, 65))
    cv2.grabCut(pixels, labels, None, *models, N_ROUNDS, cv2.GC_INIT_WITH_MASK)
    found = np.isin(labels, (cv2.GC_FGD, cv2.GC_PR_FGD)).astype(np.uint8)
    return np.asarray(cv2.morphologyEx(found, cv2.MORPH_OPEN, _brush(3)) > 0)


def _frame(shape: tuple[int, ...]) -> tuple[int, int]:
    return max(1, round(shape[0] * FRAME)), max(1, round(shape[1] * FRAME))


def _largest_piece(found: BoolArray) -> tuple[BoolArray, float]:
    import cv2

    n_pieces, labels, figures, _ = cv2.connectedComponentsWithStats(
        found.astype(np.uint8), connectivity=8
    )
    if n_pieces <= 1:
        return found, 0.0
    areas = figures[1:, cv2.CC_STAT_AREA]
    largest = (labels == 1 + int(areas.argmax())).astype(np.uint8)
    return np.asarray(cv2.morphologyEx(largest, cv2.MORPH_CLOSE, _brush(5)) > 0), float(
        areas.max() / areas.sum()
    )


def _without_appendages(piece: BoolArray) -> BoolArray:
    """Return a compact object without what sticks out of it, such as fingers; objects of another form are left as they are."""
    import cv2

    size = max(3, round(APPENDAGE * float(np.sqrt(piece.sum()))))
    body = cv2.morphologyEx(piece.astype(np.uint8), cv2.MORPH_OPEN, _brush(size)) > 0
    return _largest_piece(body)[0] if body.sum() >= LEAST_BODY * piece.sum() else piece


def _quality(pixels: ByteArray, found: BoolArray, *, stability: float = 1.0) -> CutQuality:
    import cv2

    piece, largest = _largest_piece(found)
    mask = piece.astype(np.uint8)
    outlines, _ = cv2.findContours(mask, cv2.RETR_EXTERNAL, cv2.CHAIN_APPROX_NONE)
    if not outlines:
        return CutQuality(
            share=0.0,
            contact=0.0,
            largest=0.0,
            solidity=0.0,
            contrast=0.0,
            likeness=0.0,
            outline=0.0,
        )
    outline = max(outlines, key=len)
    hull = cv2.contourArea(cv2.convexHull(outline))
    lab = cv2.cvtColor(pixels.astype(np.float32) / 255.0, cv2.COLOR_RGB2LAB)
    contrast, clearness = _edges(lab, mask)
    return CutQuality(
        share=float(piece.mean()),
        contact=_contact(outline[:, 0], piece.shape),
        largest=largest,
        solidity=float(cv2.contourArea(outline) / hull) if hull > 0 else 0.0,
        contrast=contrast,
        likeness=_likeness(lab, piece),
        outline=clearness,
        aside=_aside(piece),
        stability=float(stability),
    )


def _aside(piece: BoolArray) -> float:
    """Return the distance of the centre of a piece from the middle, 1 at the edge."""
    middles = [
        positions.mean() / max(1, length - 1)
        for positions, length in zip(np.nonzero(piece), piece.shape, strict=True)
    ]
    return float(2.0 * max(abs(middle - 0.5) for middle in middles))


def _contact(points: ByteArray, shape: tuple[int, ...]) -> float:
    height, width = shape[:2]
    up, across = (one + 1 for one in _frame(shape))
    x, y = points[:, 0], points[:, 1]
    return float(
        ((x <= across) | (x >= width - 1 - across) | (y <= up) | (y >= height - 1 - up)).mean()
    )


def _likeness(lab: FloatArray, piece: BoolArray) -> float:
    """Return the intersection of the colour histograms of object and surroundings."""
    steps = np.floor(lab / np.array([LIGHTNESS_STEP, HUE_STEP, HUE_STEP])).astype(np.int64)
    _, colours = np.unique(steps.reshape(-1, 3), axis=0, return_inverse=True)
    colours, is_object = colours.ravel(), piece.ravel()
    if is_object.all():
        return 1.0
    shares = [
        np.bincount(colours[part], minlength=int(colours.max()) + 1) / part.sum()
        for part in (is_object, ~is_object)
    ]
    return float(np.minimum(*shares).sum())


def _edges(lab: FloatArray, mask: ByteArray) -> tuple[float, float]:
    """Return the colour distance across the outline, and how much stronger edges are on it than inside."""
    import cv2

    inner, outer = cv2.erode(mask, _brush(5)), cv2.dilate(mask, _brush(5))
    inside, outside = (
        mask_between(cv2.erode(mask, _brush(15)), inner),
        mask_between(outer, cv2.dilate(mask, _brush(15))),
    )
    depth = cv2.distanceTransform(mask, cv2.DIST_L2, 3)
    core = depth > CORE_DEPTH * depth.max()
    if not (inside.any() and outside.any() and core.any()):
        return 0.0, 0.0
    contrast = float(np.linalg.norm(lab[inside].mean(axis=0) - lab[outside].mean(axis=0)))
    smooth = cv2.GaussianBlur(lab, (0, 0), 1.2)
    steps = cv2.Sobel(smooth, cv2.CV_32F, 1, 0) ** 2 + cv2.Sobel(smooth, cv2.CV_32F, 0, 1) ** 2
    strength = np.sqrt(steps.sum(axis=2))
    return contrast, float(
        strength[mask_between(inner, outer)].mean() / max(1e-3, float(strength[core].mean()))
    )


def mask_between(inner: ByteArray, outer: ByteArray) -> BoolArray:
    return np.asarray((outer > 0) & (inner == 0))


def _refine(pixels: ByteArray, piece: BoolArray) -> FloatArray:
    """Return a soft mask of full size whose outline follows the edges of the image."""
    import cv2

    height, width = pixels.shape[:2]
    rough = cv2.resize(piece.astype(np.float32), (width, height), interpolation=cv2.INTER_LINEAR)
    radius = max(2, round(1.5 * max(height, width) / LONGEST_SIDE))
    guide = pixels.astype(np.float32).mean(axis=2) / 255.0
    soft = _guided(guide, rough, radius=radius, regularity=4e-4)
    sharpened = np.clip((soft - 0.35) / 0.5, 0.0, 1.0)
    near = cv2.dilate((rough > 0.5).astype(np.uint8), _brush(2 * radius + 1)) > 0  # noqa: PLR2004
    return np.asarray(np.where(near, sharpened, 0.0), dtype=np.float32)


def _guided(guide: FloatArray, rough: FloatArray, *, radius: int, regularity: float) -> FloatArray:
    """Return the rough mask as a locally linear function of the guide (the guided filter)."""
    import cv2

    window = (2 * radius + 1, 2 * radius + 1)

    def mean(values: FloatArray) -> FloatArray:
        return np.asarray(cv2.blur(values, window), dtype=np.float32)

    mean_guide, mean_rough = mean(guide), mean(rough)
    slope = (mean(guide * rough) - mean_guide * mean_rough) / (
        mean(guide * guide) - mean_guide**2 + regularity
    )
    return np.asarray(mean(slope) * guide + mean(mean_rough - slope * mean_guide), dtype=np.float32)


def _brush(size: int) -> ByteArray:
    import cv2

    return np.asarray(cv2.getStructuringElement(cv2.MORPH_ELLIPSE, (size, size)), dtype=np.uint8)
