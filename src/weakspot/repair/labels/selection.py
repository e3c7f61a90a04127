"""Which chosen samples have no label yet, and what they were chosen for."""

from collections.abc import Sequence

import numpy as np

from weakspot.core.arrays import BoolArray, IntArray
from weakspot.core.dataset import Task
from weakspot.core.failures import top_classes
from weakspot.core.samples import SampleSet
from weakspot.core.slices import FailureSlice
from weakspot.core.training_sets import TrainingSelection

N_LIKELIEST = 2


def labelling_rows(selection: TrainingSelection, samples: SampleSet) -> IntArray:
    """Return the rows of a selection that cannot be trained on before they have a label, in its order."""
    return np.asarray(selection.rows[~samples.dataset.is_labelled[selection.rows]], dtype=np.int64)


def chosen_for(
    rows: IntArray, slices: Sequence[FailureSlice], samples: SampleSet
) -> dict[int, str]:
    """Return by row the title of the slice that it is most likely a member of; rows that are in no slice are left out.

    A row is in a slice if the rule holds and the class, as far as the classifier tells, is one of the two likeliest. Of several
    slices it is the one whose class is the likeliest, else the first.
    """
    best = np.full(len(rows), -1.0)
    titles: dict[int, str] = {}
    for found in slices:
        belief = np.where(found.rule.members(samples, rows), _belief(found, samples, rows), -1.0)
        for place in np.flatnonzero(belief > best):
            titles[int(rows[place])] = found.title
        best = np.maximum(best, belief)
    return titles


def _belief(found: FailureSlice, samples: SampleSet, rows: IntArray) -> IntArray:
    """Return how likely the class of a slice is for every row, -1 if it is out of the question and 0 if nobody can tell."""
    dataset = samples.dataset
    if dataset.probabilities is None:
        return np.zeros(len(rows), dtype=np.int64)
    probabilities = np.nan_to_num(np.asarray(dataset.probabilities)[rows], nan=0.0)
    code = dataset.class_code(found.class_name)
    possible: BoolArray = np.ones(len(rows), dtype=np.bool_)
    if dataset.task is Task.SINGLE_LABEL:
        possible = np.any(top_classes(probabilities, N_LIKELIEST) == code, axis=1)
    return np.where(possible, probabilities[:, code], -1.0)
