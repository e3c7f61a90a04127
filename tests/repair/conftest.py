import numpy as np
import pytest
from tests.build import slice_of

from weakspot.core.dataset import dataset_from_columns
from weakspot.core.samples import SampleSet

GREEN = [True, True, False, False, False, False, False, False]


@pytest.fixture
def training():
    """Eight apples, two of them green, and four pears; confidence in the truth falls with the row number."""
    labels = [0] * 8 + [1] * 4
    truth = np.linspace(0.9, 0.35, 12)
    probabilities = np.array(
        [
            [one, 1 - one] if label == 0 else [1 - one, one]
            for one, label in zip(truth, labels, strict=True)
        ]
    )
    dataset = dataset_from_columns(
        class_names=["apple", "pear"],
        labels=labels,
        splits=["train"] * 12,
        metadata={"green": GREEN + [False] * 4, "wet": [False] * 6 + [True] * 2 + [False] * 4},
        probabilities=probabilities.astype(np.float32),
    )
    return SampleSet(dataset=dataset, rows=np.arange(12), name="training")


@pytest.fixture
def make_slice():
    def build(column="green", class_name="apple", **changes):
        return slice_of(changes.pop("rule", column), class_name=class_name, **changes)

    return build
