"""Evaluation images that are nearly the same as a training image, by their embeddings."""

import numpy as np

from weakspot.core.arrays import BoolArray, FloatArray, IntArray
from weakspot.core.dataset import Split, Task
from weakspot.core.samples import SampleSet
from weakspot.core.seeding import generator
from weakspot.pipeline.near_identical import NEAR

LIMIT = NEAR[1]
"""Distance, in units of the median distance of two images of a class: one that was compressed anew lies below it."""
MOST_EVALUATION, MOST_TRAINING = 2_000, 40_000
STANDS_OUT = 3.0
"""Within twice the distance there may be at most so many times the images: in any cloud of independent images there are more."""
LEAST_IMAGES = 20
N_SCALE_PAIRS = 4_000
BLOCK = 512


def find_near_copies(samples: SampleSet, space: str, evaluated: IntArray) -> BoolArray | None:
    """Return which evaluation rows have a near copy in training [n]; None where nothing tells.

    Of very many, a random part is looked at, and the rest counts as having none.

    Args:
        samples: all samples.
        space: whose embeddings tell.
        evaluated: the rows [n].
    """
    if space not in samples.spaces:
        return None
    random = generator(0, "preflight", "near copies")
    training = samples.dataset.rows_of(Split.TRAIN)
    training = training[samples.has_embeddings(space, training)] if len(training) else training
    known = samples.has_embeddings(space, evaluated) if len(evaluated) else np.zeros(0, np.bool_)
    places = np.flatnonzero(known)
    if min(len(training), len(places)) < LEAST_IMAGES:
        return None
    training = random.permutation(training)[:MOST_TRAINING]
    places = random.permutation(places)[:MOST_EVALUATION]
    nearest, scale = _nearest(samples, space, evaluated[places], training, random)
    is_near = nearest <= LIMIT * scale
    found = np.zeros(len(evaluated), dtype=np.bool_)
    if int((nearest <= 2 * LIMIT * scale).sum()) <= STANDS_OUT * int(is_near.sum()):
        found[places[is_near]] = True
    return found


def _nearest(
    samples: SampleSet,
    space: str,
    evaluated: IntArray,
    training: IntArray,
    random: np.random.Generator,
) -> tuple[np.ndarray[tuple[int], np.dtype[np.float64]], float]:
    """Return the distance of every evaluation row to the nearest training row [n], and the median distance of two images of a class."""
    own, others = (_unit(samples.embeddings(space, rows)) for rows in (evaluated, training))
    firsts = random.integers(0, len(own), N_SCALE_PAIRS)
    seconds = random.integers(0, len(others), N_SCALE_PAIRS)
    if samples.dataset.task is Task.SINGLE_LABEL:
        labels = samples.dataset.labels
        alike = labels[evaluated[firsts]] == labels[training[seconds]]
        firsts, seconds = (firsts[alike], seconds[alike]) if alike.any() else (firsts, seconds)
    scale = float(np.median(np.linalg.norm(own[firsts] - others[seconds], axis=1)))
    best = [
        (own[start : start + BLOCK] @ others.T).max(axis=1) for start in range(0, len(own), BLOCK)
    ]
    cosines = np.concatenate(best).astype(np.float64)
    return np.sqrt(np.maximum(0.0, 2.0 - 2.0 * cosines)), scale


def _unit(embeddings: FloatArray) -> FloatArray:
    lengths = np.linalg.norm(embeddings, axis=1, keepdims=True)
    return np.asarray(embeddings / np.maximum(lengths, 1e-12))
