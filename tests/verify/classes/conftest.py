"""Small tables of labels and predictions."""

import numpy as np
import pytest

from weakspot.core.dataset import dataset_from_columns
from weakspot.core.failures import FailureCriterion
from weakspot.verify.classes import ClassMaterial


@pytest.fixture
def make_material():
    """Return what makes the material of answers by class: {class: {answer: samples}}."""

    def make(answers, *, groups=None, metadata=None):
        names = list(answers)
        pairs = [
            (names.index(name), names.index(said))
            for name, counts in answers.items()
            for said, count in counts.items()
            for _ in range(count)
        ]
        labels, predicted = np.array(pairs, dtype=np.int64).T
        dataset = dataset_from_columns(
            class_names=names,
            labels=labels,
            predictions=predicted,
            groups=groups,
            metadata=metadata,
        )
        return ClassMaterial.of(dataset, np.arange(len(labels)), FailureCriterion())

    return make


@pytest.fixture
def birds():
    """Return the answers to four kinds of birds of which one is mostly taken for another."""
    return {
        "heron": {"heron": 4, "crane": 44, "gull": 2, "owl": 2},
        "crane": {"crane": 46, "heron": 2, "gull": 2, "owl": 2},
        "gull": {"gull": 44, "heron": 3, "crane": 3, "owl": 2},
        "owl": {"owl": 46, "gull": 3, "crane": 3},
    }
