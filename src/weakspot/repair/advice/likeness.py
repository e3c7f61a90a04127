"""Which images are like those of a kind: a linear probe between the kind and others, judged on images that it was not fitted to."""

import numpy as np

from weakspot.core.arrays import BoolArray, DoubleArray, FloatArray, IntArray, even_part
from weakspot.core.dataset import Task
from weakspot.core.heads import Head
from weakspot.core.samples import SampleSet
from weakspot.core.seeding import generator
from weakspot.pipeline.preparation import CLIP, FEATURES
from weakspot.repair.head_training import HeadTrainer

PROBE = HeadTrainer(penalty=1e-2, tolerance=1e-3)
N_FOLDS = 5
LEAST_SEEN = 5
MOST_FITTED = 1_000
MEMBERS_PASSED = 0.9


def space_of(samples: SampleSet) -> str | None:
    """Return the embeddings in which images are compared: those of an encoder that knows nothing of the classifier, where there are any."""
    return next((name for name in (CLIP, FEATURES) if name in samples.spaces), None)


def with_embedding(samples: SampleSet, rows: IntArray, space: str) -> IntArray:
    return np.asarray(rows[samples.has_embeddings(space, rows)], dtype=np.int64)


def fit_probe(kind: FloatArray, others: FloatArray) -> Head:
    """Return a layer whose second answer says that an image is of the kind; both sides weigh the same."""
    codes = np.repeat([1, 0], [len(kind), len(others)])
    weights = np.where(codes == 1, 1.0 / len(kind), 1.0 / len(others))
    trained = PROBE.train(
        np.concatenate([kind, others]), codes, weights, task=Task.SINGLE_LABEL, n_classes=2
    )
    return trained.head


def probe_scores(head: Head, embeddings: FloatArray) -> DoubleArray:
    logits = head.logits(embeddings)
    return np.asarray(logits[:, 1] - logits[:, 0], dtype=np.float64)


def held_out_scores(
    samples: SampleSet, own: IntArray, others: IntArray, space: str, *, seed: int
) -> tuple[DoubleArray, DoubleArray]:
    """Return how much rows of a kind and other rows are like the kind, each by a probe that was fitted to others of its side.

    What belongs together is never on both sides of a probe.
    """
    rng = generator(seed, "likeness")
    sides = [(own, np.zeros(len(own))), (others, np.zeros(len(others)))]
    folds = []
    for rows, _ in sides:
        names, codes = np.unique(samples.dataset.groups[rows], return_inverse=True)
        folds.append((rng.permutation(len(names)) % N_FOLDS)[codes])
    for fold in range(N_FOLDS):
        fitted = [
            even_part(rows[one != fold], MOST_FITTED)
            for (rows, _), one in zip(sides, folds, strict=True)
        ]
        if not all(map(len, fitted)):
            continue
        head = fit_probe(*(samples.embeddings(space, rows) for rows in fitted))
        for (rows, into), one in zip(sides, folds, strict=True):
            into[one == fold] = probe_by_blocks(samples, rows[one == fold], space, head)
    return sides[0][1], sides[1][1]


def probe_by_blocks(samples: SampleSet, rows: IntArray, space: str, head: Head) -> DoubleArray:
    return np.asarray(
        samples.by_blocks(space, rows, lambda embeddings: probe_scores(head, embeddings)),
        dtype=np.float64,
    )


def is_like(samples: SampleSet, rows: IntArray, kind: IntArray, *, seed: int) -> BoolArray | None:
    """Return which rows [n] are as much like the rows of a kind as nine of ten of these are; None if that cannot be told.

    Every row is judged by a probe that was fitted to others, so that rows of the very same kind pass in nine of ten cases.
    """
    space = space_of(samples)
    if space is None:
        return None
    is_known = samples.has_embeddings(space, rows)
    known, own = rows[is_known], with_embedding(samples, even_part(kind, MOST_FITTED), space)
    if len(own) < LEAST_SEEN or 0 < len(known) < LEAST_SEEN:
        return None
    found = np.zeros(len(rows), dtype=np.bool_)
    if len(known):
        own_scores, scores = held_out_scores(samples, own, known, space, seed=seed)
        found[is_known] = scores >= np.quantile(own_scores, 1 - MEMBERS_PASSED)
    return found
