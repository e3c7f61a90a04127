import numpy as np

from weakspot.core.dataset import dataset_from_columns
from weakspot.core.failures import FailureCriterion
from weakspot.core.samples import SampleSet
from weakspot.repair.collecting import pool_rows

# Rows 0 and 1 are for training and evaluation; then the pool.
SPLITS = ["train", "validation"] + ["pool"] * 7
LABELS = [0, 0, 0, 0, 0, 1, -1, 0, -1]
GREEN = [True, True, True, False, True, True, True, True, False]
TRUTH = [0.9, 0.9, 0.8, 0.1, 0.6, 0.9, 0.5, 0.2, 0.5]


def _samples(*, with_probabilities=True):
    probabilities = np.array([[one, 1 - one] for one in TRUTH], dtype=np.float32)
    given = (
        {"probabilities": probabilities}
        if with_probabilities
        else {"predictions": np.argmax(probabilities, axis=1)}
    )
    dataset = dataset_from_columns(
        class_names=["apple", "pear"],
        labels=LABELS,
        splits=SPLITS,
        metadata={"green": GREEN},
        **given,
    )
    return SampleSet(dataset=dataset, rows=np.arange(len(LABELS)))


def test_pool_rows__fits_of_the_class_or_unlabelled__wrong_ones_first_then_unsure_ones(make_slice):
    (own,) = pool_rows([make_slice()], _samples(), FailureCriterion())
    # Row 7 is wrong, 4 is less sure than 2, 6 has no label; 3 and 8 are not green, 5 is a pear, 0 and 1 are no pool rows.
    assert own.rows.tolist() == [7, 4, 2, 6]
    assert own.is_labelled.tolist() == [True, True, True, False]
    assert own.is_wrong.tolist() == [True, False, False, False]
