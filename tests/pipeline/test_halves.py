import pytest

from weakspot.core.dataset import Split, dataset_from_columns
from weakspot.pipeline.halves import evaluated_splits
from weakspot.pipeline.settings import Settings, VerifySettings


@pytest.mark.parametrize(
    ("splits", "labels", "used"),
    [
        (["train", "validation", "test"], [0, 0, 0], [Split.VALIDATION]),
        (["train", "train", "test"], [0, 0, 0], [Split.TEST]),
        (["train", "validation", "test"], [0, -1, 0], [Split.TEST]),
        (["train", "train", "pool"], [0, 0, 0], [Split.VALIDATION]),
        (["train", "train", "test"], [0, 0, -1], [Split.VALIDATION]),
    ],
)
def test_evaluated_splits__test_stands_in(splits, labels, used):
    data = dataset_from_columns(class_names=["a"], labels=labels, splits=splits)
    assert list(evaluated_splits(Settings(), data)) == used


def test_evaluated_splits__as_configured():
    data = dataset_from_columns(class_names=["a"], labels=[0, 0], splits=["validation", "test"])
    both = Settings(verify=VerifySettings(splits=("validation", "test")))
    assert evaluated_splits(both, data) == (Split.VALIDATION, Split.TEST)
