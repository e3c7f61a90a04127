import numpy as np
import pytest

from weakspot.core.dataset import Split, dataset_from_columns
from weakspot.core.run import CheckState
from weakspot.run.preflight.stage import (
    check_conflicts,
    check_files,
    check_groups,
    check_leaks,
)


def _data(hashes, splits, labels=None):
    return dataset_from_columns(
        class_names=["a", "b"],
        labels=labels or [0] * len(hashes),
        splits=splits,
        content_hashes=hashes,
        locations=[f"{number}.png" for number in range(len(hashes))],
    )


def test_check_files__set_aside():
    assert check_files({}, 90).state is CheckState.OK
    check = check_files({"truncated": 2, "zero-bytes": 1}, 87)
    assert check.sentence == "3 of 90 samples were set aside: 2 truncated, 1 zero-bytes."
    assert check.short == "3 files set aside"
    assert check_files({"truncated": 1}, 9).short == "1 file set aside"


@pytest.mark.parametrize(
    ("n_leaked", "state"), [(0, "ok"), (1, "notice"), (4, "notice"), (5, "problem")]
)
def test_check_leaks__copies_in_training(n_leaked, state):
    train = [f"t{number}" for number in range(50)]
    held = [*train[:n_leaked], *[f"v{number}" for number in range(100 - n_leaked)]]
    data = _data([*train, *held], ["train"] * 50 + ["validation"] * 100)
    check = check_leaks(data, data.rows_of(Split.VALIDATION))
    assert check.state == state
    assert n_leaked == 0 or f"{n_leaked} of 100 evaluation images" in check.sentence


def test_check_leaks__nearly_the_same_counts_too():
    data = _data(["x", "x", "y", "z"], ["train", "validation", "validation", "validation"])
    near = np.array([True, True, True]), 3
    check = check_leaks(data, data.rows_of(Split.VALIDATION), near)
    assert check.sentence.startswith(
        "Training holds 1 of 3 evaluation images exactly, and 2 of 3 evaluation images nearly"
    )
    none = np.zeros(3, dtype=bool), 3
    assert check_leaks(data, data.rows_of(Split.VALIDATION), none).state is CheckState.NOTICE


def test_check_leaks__pool_and_evaluation_share_what_they_like():
    data = _data(["x", "x", "y"], ["pool", "validation", "train"])
    assert check_leaks(data, data.rows_of(Split.VALIDATION)).state is CheckState.OK
    assert check_leaks(_data(["x"], ["validation"]), np.array([0])) is None


def test_check_conflicts__one_image_with_two_labels():
    data = _data(["x", "x", "y", "y"], ["validation"] * 4, [0, 1, 1, 1])
    check = check_conflicts(data, np.arange(4))
    assert check.state is CheckState.NOTICE
    assert check.short == "1 images with two labels"
    assert check_conflicts(data, np.arange(1, 4)).state is CheckState.OK


def test_check_groups__in_several_splits():
    assert check_groups(0, 0) is None
    assert check_groups(7, 0).state is CheckState.OK
    assert check_groups(7, 2).short == "2 groups in several splits"
