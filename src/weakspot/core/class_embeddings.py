"""The samples of one class as discoverers read them: with an embedding, in an order that does not depend on the table."""

import numpy as np

from weakspot.core.arrays import AnyArray, BoolArray, FloatArray
from weakspot.core.failures import ClassProblem
from weakspot.core.samples import SampleSet


def with_embeddings(
    samples: SampleSet, problem: ClassProblem, space: str
) -> tuple[ClassProblem, FloatArray]:
    """Return the problem without samples that lack an embedding, ordered by sample id, and their embeddings [n, d]."""
    embeddings = samples.embeddings(space, problem.rows)
    ids = np.array(samples.dataset.sample_ids(problem.rows))
    order = np.argsort(ids, kind="stable")
    has_embedding = np.asarray(np.isfinite(embeddings).all(axis=1))
    order = order[has_embedding[order]]
    return problem.only(order), embeddings[order]


def obstacle(
    problem: ClassProblem, *, min_failures: int, min_right: int, n_without: int = 0
) -> str:
    """Return why nothing can be said of a class, or an empty text.

    Args:
        problem: the samples that can be looked at.
        min_failures: least number of failures.
        min_right: least number of samples that did not fail.
        n_without: samples that were left out because they have no embedding.
    """
    missing = f" {n_without} samples have no embedding and were left out." if n_without else ""
    counted = f"{problem.n_failed} of {len(problem.rows)} samples failed"
    if problem.n_failed < min_failures:
        return f"Too few failures to see a pattern: {counted}, at least {min_failures} are needed.{missing}"
    if problem.n_right < min_right:
        return f"Too few samples that did not fail: {counted}, at least {min_right} right ones are needed.{missing}"
    return ""


def separating_cut(scores: AnyArray, failed: BoolArray, *, min_inside: int = 1) -> float | None:
    """Return the score from which on failures stand out most: the largest association of membership with failure.

    The cut lies midway between two neighbouring scores; None when there is none that leaves enough samples on both sides.

    >>> separating_cut(np.array([0.1, 0.2, 0.7, 0.9]), np.array([False, False, True, True])).__round__(2)
    0.45
    """
    order = np.argsort(-scores, kind="stable")
    ranked = np.asarray(scores, dtype=np.float64)[order]
    ends = np.flatnonzero(ranked[:-1] > ranked[1:])
    ends = ends[ends + 1 >= min_inside]
    if not len(ends):
        return None
    share = (ends + 1) / len(ranked)
    both = np.cumsum(failed[order])[ends] / len(ranked)
    # The phi coefficient of every cut, up to a factor that is the same for all.
    strengths = (both - share * failed.mean()) / np.sqrt(share * (1 - share))
    best = ends[int(np.argmax(np.round(strengths, 9)))]
    return float((ranked[best] + ranked[best + 1]) / 2)
