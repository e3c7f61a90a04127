import numpy as np
import pytest

from weakspot.core.dataset import Split, dataset_from_columns
from weakspot.core.errors import DataError
from weakspot.repair.bench import refuse_contamination

SPLITS = ["train", "train", "validation", "test", "pool", "pool", "synthetic"]


def _dataset(*, hashes="abcdefg", splits=SPLITS, **columns):
    names = [f"{split}-{number}" for number, split in enumerate(splits)]
    return dataset_from_columns(
        class_names=["apple", "pear"],
        labels=[0] * len(splits),
        splits=splits,
        sample_ids=names,
        content_hashes=list(hashes),
        metadata=columns,
    )


def _check(dataset, **changes):
    rows = {
        "training": dataset.rows_of(Split.TRAIN),
        "pool": dataset.rows_of(Split.POOL),
        "synthetic": dataset.rows_of(Split.SYNTHETIC),
        "verifying": dataset.rows_of(Split.VALIDATION, Split.TEST),
    }
    refuse_contamination(dataset, **{**rows, **changes})


@pytest.mark.parametrize(("hashes", "split"), [("abcdcfg", "validation"), ("abcddfg", "test")])
def test_refuse_contamination__pool_image_that_is_measured_on(hashes, split):
    # The fifth sample is of the pool and shows the same image as a verifying one.
    with pytest.raises(DataError, match="Images of pool samples .* 1 in all") as caught:
        _check(_dataset(hashes=hashes))
    assert caught.value.given == ["pool-4 (pool)"]
    assert "Take them out" in caught.value.fix


def test_refuse_contamination__training_rows_but_not_repeated_training_images():
    _check(_dataset(hashes="abcaefg"))
    with pytest.raises(DataError, match="Samples that were trained on"):
        _check(_dataset(), training=np.array([0, 3]))


@pytest.mark.parametrize(
    "columns",
    [
        {"synthetic": [None, False, False, True, None, None, True]},
        {"synthetic": ["", "no", "false", "Yes", "", "", "yes"]},
        {"synthetic": [0, 0, 0, 1, 0, 0, 1]},
        {"generator": [None, "", " ", "planted", None, None, "planted"]},
    ],
)
def test_refuse_contamination__generated_sample_in_the_test_split(columns):
    with pytest.raises(DataError, match="Generated samples .* 1 in all") as caught:
        _check(_dataset(**columns))
    assert caught.value.given == ["test-3 (test)"]
    assert "'synthetic'" in caught.value.fix


def test_refuse_contamination__synthetic_split_is_given_as_verifying():
    with pytest.raises(DataError, match="Generated samples") as caught:
        _check(_dataset(), verifying=np.array([3, 6]), synthetic=None)
    assert caught.value.given == ["synthetic-6 (synthetic)"]
