"""Evaluation images that are nearly the same as a training image: compressed anew, or at another size.

Embeddings tell which training images come into question, thumbnails whether it is the same photograph: embeddings of an image that was
compressed anew move as far as the nearest others are, its thumbnail hardly moves.
"""

from dataclasses import dataclass

import numpy as np
from PIL import Image

from weakspot.core.arrays import AnyArray, BoolArray, FloatArray, IntArray
from weakspot.core.dataset import Split
from weakspot.core.samples import SampleSet
from weakspot.core.seeding import generator
from weakspot.media.images import UnreadableImageError, decode_image
from weakspot.media.locations import UnreadableLocationError, is_local, read_location

ALIKE = 0.98
"""Correlation of two thumbnails from which on they show the same photograph."""
ABOUT_ALIKE = 0.92
STANDS_OUT = 3.0
"""At most so many times the images may be about alike: where thumbnails resemble each other anyway, nothing can be told."""
SIDE = 16
LEAST_CONTRAST = 4.0
MOST_EVALUATION, MOST_TRAINING = 150, 40_000
N_NEIGHBOURS = 5
LEAST_IMAGES = 20


@dataclass(frozen=True, kw_only=True, eq=False)
class NearCopies:
    """What was found.

    Args:
        is_copy: which evaluation rows are nearly the same as a training image [n].
        n_looked_at: how many of them were looked at, at random.
    """

    is_copy: BoolArray
    n_looked_at: int


def find_near_copies(samples: SampleSet, space: str, evaluated: IntArray) -> NearCopies | None:
    """Look for near copies of some evaluation rows in training; None where nothing tells.

    Args:
        samples: all samples.
        space: whose embeddings tell which training images are compared.
        evaluated: the rows [n].
    """
    if space not in samples.spaces or not samples.dataset.has_images:
        return None
    random = generator(0, "preflight", "near copies")
    training = _usable(samples, space, samples.dataset.rows_of(Split.TRAIN))
    places = np.flatnonzero(np.isin(evaluated, _usable(samples, space, evaluated)))
    if min(len(training), len(places)) < LEAST_IMAGES:
        return None
    training = random.permutation(training)[:MOST_TRAINING]
    places = random.permutation(places)[:MOST_EVALUATION]
    neighbours = _neighbours(samples, space, evaluated[places], training)
    found = _Thumbnails(samples).closest(evaluated[places], neighbours)
    is_copy = np.zeros(len(evaluated), dtype=np.bool_)
    if int((found >= ABOUT_ALIKE).sum()) <= STANDS_OUT * int((found >= ALIKE).sum()):
        is_copy[places[found >= ALIKE]] = True
    return NearCopies(is_copy=is_copy, n_looked_at=len(places))


def _usable(samples: SampleSet, space: str, rows: IntArray) -> IntArray:
    """Return the rows that have an embedding and an image on this machine."""
    if not len(rows):
        return rows
    rows = rows[samples.has_embeddings(space, rows)]
    places = samples.dataset.locations(rows)
    return rows[[place is not None and is_local(place) for place in places]]


def _neighbours(
    samples: SampleSet, space: str, evaluated: IntArray, training: IntArray
) -> IntArray:
    """Return the training rows whose embeddings are nearest to those of each evaluation row [n, k]."""
    own, others = (_unit(samples.embeddings(space, rows)) for rows in (evaluated, training))
    order = np.argpartition(-(own @ others.T), N_NEIGHBOURS - 1, axis=1)[:, :N_NEIGHBOURS]
    return training[order]


def _unit(embeddings: FloatArray) -> FloatArray:
    lengths = np.linalg.norm(embeddings, axis=1, keepdims=True)
    return np.asarray(embeddings / np.maximum(lengths, 1e-12))


class _Thumbnails:
    """Tiny images of rows, each read once."""

    def __init__(self, samples: SampleSet) -> None:
        self._samples = samples
        self._known: dict[int, AnyArray | None] = {}

    def closest(self, rows: IntArray, others: IntArray) -> AnyArray:
        """Return the highest correlation of each row with one of its others [n], -1 where nothing can be told."""
        pairs = zip(rows.tolist(), others.tolist(), strict=True)
        return np.array([max(self._correlation(row, one) for one in own) for row, own in pairs])

    def _correlation(self, row: int, other: int) -> float:
        first, second = self._of(row), self._of(other)
        return -1.0 if first is None or second is None else float(first @ second)

    def _of(self, row: int) -> AnyArray | None:
        if row not in self._known:
            location = self._samples.dataset.locations(np.array([row]))[0]
            self._known[row] = _thumbnail(location or "")
        return self._known[row]


def _thumbnail(location: str) -> AnyArray | None:
    """Return what an image shows beside its mean colour, as a unit vector; None for one colour and what cannot be read."""
    try:
        image = decode_image(read_location(location), image_side=4 * SIDE).image
    except (UnreadableImageError, UnreadableLocationError, MemoryError):
        return None
    tiny = image.resize((SIDE, SIDE), Image.Resampling.BOX)
    shown = np.asarray(tiny, dtype=np.float64)
    shown = (shown - shown.mean(axis=(0, 1))).ravel()
    return shown / np.linalg.norm(shown) if shown.std() >= LEAST_CONTRAST else None
