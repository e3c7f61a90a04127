import numpy as np
import pytest

from weakspot.core.dataset import Split, corrected, dataset_from_columns
from weakspot.core.samples import SampleSet
from weakspot.run.halves import evaluated_splits, fitted_halves, split_in_halves
from weakspot.run.settings import Settings, VerifySettings


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


def test_split_in_halves__labels_corrected_in_one__both_hold_the_same_images():
    labels = np.arange(40) % 2
    data = dataset_from_columns(
        class_names=["a", "b"],
        labels=labels,
        splits=["validation"] * 40,
        predictions=np.where(np.arange(40) % 5 == 0, 1 - labels, labels),
    )

    def halves(dataset):
        samples = SampleSet(dataset=dataset, rows=np.arange(40))
        ((found, kept),) = split_in_halves(samples, Settings(), Settings().failure.criterion())
        return found.rows.tolist(), kept.rows.tolist()

    discovery, confirmation = halves(data)
    changed = {row: ("a",) if labels[row] else ("b",) for row in discovery[1:8]}
    now = halves(corrected(data, {discovery[0]: None, **changed}))
    assert now == (discovery[1:], confirmation)


@pytest.mark.parametrize(
    ("n_small", "images", "n_fitted"), [(4000, 1, 1), (3998, 1, 2), (4000, 2, 2)]
)
def test_fitted_halves__every_class_is_large__only_the_first(n_small, images, n_fitted):
    labels = np.repeat([0, 1], [4400, n_small])
    data = dataset_from_columns(
        class_names=["a", "b"],
        labels=labels,
        splits=["validation"] * len(labels),
        predictions=np.where(np.arange(len(labels)) % 20 < 2, 1 - labels, labels),
        groups=None if images == 1 else [f"object {row // images}" for row in range(len(labels))],
    )
    settings = Settings(verify=VerifySettings(scheme="cross-fit"))
    criterion = settings.failure.criterion()
    samples = SampleSet(dataset=data, rows=np.arange(len(labels)))
    pairs = split_in_halves(samples, settings, criterion)
    found_on = fitted_halves(pairs, criterion)
    assert [one.digest() for one in found_on] == [one.digest() for one, _ in pairs[:n_fitted]]
