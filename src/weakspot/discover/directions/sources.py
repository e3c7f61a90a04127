"""The samples of one class as the compiled code takes them."""

from dataclasses import dataclass

import numpy as np

from weakspot.core.arrays import BoolArray, DoubleArray, FloatArray, IntArray
from weakspot.discover.directions.kernels import Source, svm_path
from weakspot.discover.directions.products import gram_of
from weakspot.discover.directions.scaling import stratified_part
from weakspot.discover.directions.validation import Plan

OWN_GRAM_ROWS = 256
GRAM_ROWS = 1_500
TOLERANCE = 1e-3
FINE_TOLERANCE = 1e-5


def source_of(vectors: FloatArray, *, largest_gram: int = GRAM_ROWS) -> Source:
    """Return the Gram matrix of vectors [n, d], or the vectors themselves if there are too many."""
    values = np.ascontiguousarray(vectors, dtype=np.float32)
    if len(values) > largest_gram:
        return Source(values, is_gram=False)
    gram = gram_of(values) if len(values) <= OWN_GRAM_ROWS else np.ascontiguousarray(values @ values.T)
    return Source(gram, is_gram=True)


def plan_of(costs: tuple[float, ...], *, n_folds: int = 2, n_outer_folds: int = 5, slack: float = 0.0) -> Plan:
    """Return how models are fitted and chosen, with costs in ascending order."""
    return Plan(np.array(sorted(costs), dtype=np.float64), n_folds, n_outer_folds, TOLERANCE, float(slack))


def fit_svm(vectors: FloatArray, failed: BoolArray, cost: float, *, tolerance: float = FINE_TOLERANCE) -> tuple[DoubleArray, float]:
    """Return weights [d] and bias of the linear SVM with hinge loss, balanced class weights and a bias that is not penalised.

    Scores above zero say that a sample fails. Both sides must occur.
    """
    signed, biases = svm_path(source_of(vectors), failed, np.array([cost], dtype=np.float64), tolerance)
    return signed[0] @ np.asarray(vectors, dtype=np.float64), float(biases[0])


@dataclass(frozen=True, kw_only=True, eq=False)
class ClassData:
    """One class.

    Args:
        vectors: scaled vectors [n, d].
        failed: which samples failed [n].
        source: the same vectors for the solver.
        places: of the samples by which chance is measured: all, or a part of a large class [k].
        gram: Gram matrix [k, k] of these.
    """

    vectors: FloatArray
    failed: BoolArray
    source: Source
    places: IntArray
    gram: FloatArray

    @property
    def is_whole(self) -> bool:
        """Return whether chance is measured by all samples."""
        return len(self.places) == len(self.failed)


def class_data(vectors: FloatArray, failed: BoolArray, *, max_null_samples: int, draws: np.random.Generator) -> ClassData:
    """Return one class, with the samples drawn by which chance is measured."""
    source = source_of(vectors)
    places = stratified_part(failed, max_null_samples, draws)
    is_same = source.is_gram and len(places) == len(failed)
    gram = source.values if is_same else source_of(vectors[places], largest_gram=len(places)).values
    return ClassData(vectors=vectors, failed=failed, source=source, places=places, gram=gram)
