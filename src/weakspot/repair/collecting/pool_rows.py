"""The pool rows that a slice could do with, in the order in which to take them."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from weakspot.core.arrays import BoolArray, FloatArray, IntArray
from weakspot.core.dataset import Split
from weakspot.core.failures import FailureCriterion, class_problems
from weakspot.core.samples import SampleSet
from weakspot.core.slices import FailureSlice, matches


@dataclass(frozen=True, kw_only=True, eq=False)
class PoolRows:
    """What the pool holds of a slice.

    Args:
        found: the slice.
        rows: rows of the data set, those to take first at the front.
        is_labelled: which of them are labelled with the class of the slice; the others have no label.
        is_wrong: which of them the classifier gets wrong, as far as that is known.
    """

    found: FailureSlice
    rows: IntArray
    is_labelled: BoolArray
    is_wrong: BoolArray


def pool_rows(
    slices: Sequence[FailureSlice], samples: SampleSet, criterion: FailureCriterion
) -> tuple[PoolRows, ...]:
    """Return for every slice the pool rows that its rule fits: labelled with its class, or without a label.

    Labelled rows come first, because they can be used at once; among these, rows that the classifier gets wrong, then by how little
    probability it gives to the truth, where that is known; then in the order of the table.
    """
    pool = samples.dataset.rows_of(Split.POOL)
    return tuple(_of_slice(found, samples, pool, criterion) for found in slices)


def _of_slice(
    found: FailureSlice, samples: SampleSet, pool: IntArray, criterion: FailureCriterion
) -> PoolRows:
    dataset = samples.dataset
    fits = pool[found.rule.members(samples, pool)]
    of_class = np.isin(fits, found.class_rows(samples.only(fits)))
    rows = fits[of_class | ~dataset.is_labelled[fits]]
    is_labelled = dataset.is_labelled[rows]
    is_wrong, confidence = _judge(found, samples, rows[is_labelled], criterion)
    wrong = np.zeros(len(rows), dtype=np.bool_)
    sure = np.full(len(rows), np.inf)
    wrong[is_labelled], sure[is_labelled] = is_wrong, confidence
    order = np.lexsort((rows, sure, ~wrong, ~is_labelled))
    return PoolRows(
        found=found, rows=rows[order], is_labelled=is_labelled[order], is_wrong=wrong[order]
    )


def _judge(
    found: FailureSlice, samples: SampleSet, rows: IntArray, criterion: FailureCriterion
) -> tuple[BoolArray, FloatArray]:
    """Return which labelled rows the classifier gets wrong, and the probability of their truth; infinite where nothing is known."""
    wrong = np.zeros(len(rows), dtype=np.bool_)
    sure = np.full(len(rows), np.inf, dtype=np.float32)
    if not samples.dataset.has_predictions or not len(rows):
        return wrong, sure
    for problem in class_problems(samples.dataset, rows, criterion):
        if matches(found, problem):
            places = np.searchsorted(rows, problem.rows)
            wrong[places] = problem.failed
            sure[places] = np.nan_to_num(problem.confidence, nan=np.inf)
    return wrong, sure
