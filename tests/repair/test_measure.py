import numpy as np
import pytest

from weakspot.core.dataset import dataset_from_columns
from weakspot.core.errors import DataError, NotEnoughDataError
from weakspot.core.failures import FailureCriterion, Side
from weakspot.core.repairs import GroupKind
from weakspot.core.samples import SampleSet
from weakspot.repair.measure import ArmAnswers, measure_arm, untouched

TOP_1 = FailureCriterion()


def _test_set():
    """Six apples (three green) and four pears; before, two green apples and one pear are wrong."""
    dataset = dataset_from_columns(
        class_names=["apple", "pear"],
        labels=[0] * 6 + [1] * 4,
        predictions=np.array([1, 1, 0, 0, 0, 0, 1, 1, 1, 0]),
        metadata={"green": [True] * 3 + [False] * 7},
    )
    return SampleSet(dataset=dataset, rows=np.arange(10), name="test")


def _answers(predicted, **changes):
    probabilities = np.eye(2, dtype=np.float32)[predicted]
    given = {"arm": "slice-balanced", "is_baseline": False, "note": "n", "n_trained": 5, "probabilities": probabilities}
    return ArmAnswers(**{**given, **changes})


def test_measure_arm__counts_every_group(make_slice):
    # After: both green apples are right, one other apple and the wrong pear stay as listed, one right pear is lost.
    arm = measure_arm(_answers([0, 0, 0, 1, 0, 0, 1, 1, 0, 0]), [make_slice()], _test_set(), TOP_1)
    table = {(change.kind, change.group): change for change in arm.changes}
    found = table[GroupKind.SLICE, "apple: unnamed (hand)"]
    assert (found.n_samples, found.right_before, found.right_after, found.gained, found.lost) == (3, 1, 3, 2, 0)
    rest = table[GroupKind.COMPLEMENT, "apple: the rest"]
    assert (rest.n_samples, rest.right_before, rest.right_after, rest.gained, rest.lost) == (3, 3, 2, 0, 1)
    pears = table[GroupKind.CLASS, "pear"]
    assert (pears.n_samples, pears.right_before, pears.right_after) == (4, 3, 2)
    overall = table[GroupKind.OVERALL, "overall"]
    assert (overall.n_samples, overall.right_before, overall.right_after, overall.gained, overall.lost) == (10, 7, 7, 2, 2)
    assert overall.p_value == 1.0
    assert found.p_value == pytest.approx(0.5)
    assert found.interval_after.low == pytest.approx(0.438503, abs=1e-6)
    assert arm.got_worse == ("apple: the rest", "pear")
    assert (arm.arm, arm.is_baseline, arm.n_trained) == ("slice-balanced", False, 5)


def test_measure_arm__several_slices_keep_distinct_names(make_slice):
    samples = _test_set()
    other = make_slice(rule=make_slice().rule.model_copy(update={"values": (False,)}))
    arm = measure_arm(_answers([0] * 10), [make_slice(), other], samples, TOP_1)
    groups = [change.group for change in arm.changes if change.kind is GroupKind.SLICE]
    assert len(set(groups)) == 2
    assert all(group.startswith("apple: unnamed (hand) (") for group in groups)


def test_measure_arm__multi_label_counts_decisions(make_slice):
    dataset = dataset_from_columns(
        class_names=["apple", "pear"],
        label_lists=[[0], [0, 1], []],
        predicted_matrix=np.array([[True, False], [False, True], [True, False]]),
        metadata={"green": [True, True, True]},
    )
    samples = SampleSet(dataset=dataset, rows=np.arange(3), name="test")
    answers = _answers([0, 0, 0], probabilities=np.array([[0.9, 0.1], [0.9, 0.9], [0.1, 0.1]], dtype=np.float32))
    arm = measure_arm(answers, [make_slice(side=Side.PRESENT)], samples, TOP_1)
    table = {(change.kind, change.group): change for change in arm.changes}
    assert (table[GroupKind.OVERALL, "overall"].n_samples, table[GroupKind.OVERALL, "overall"].right_before) == (6, 4)
    assert table[GroupKind.OVERALL, "overall"].right_after == 6
    assert table[GroupKind.CLASS, "apple"].gained == 1
    assert table[GroupKind.CLASS, "no apple"].gained == 1


def test_measure_arm__refuses_answers_for_other_samples(make_slice):
    with pytest.raises(DataError, match="one row of probabilities"):
        measure_arm(_answers([0, 1]), [make_slice()], _test_set(), TOP_1)


def test_untouched__refuses_used_rows_and_leaves_out_their_copies():
    hashes = ["a", "b", "c", "a", "d", "d", "e"]
    dataset = dataset_from_columns(
        class_names=["apple", "pear"],
        labels=[0, 0, 0, 0, 0, 0, -1],
        predictions=np.zeros(7, dtype=np.int64),
        content_hashes=hashes,
    )
    samples = SampleSet(dataset=dataset, rows=np.arange(3, 7), name="test")
    fresh = untouched(samples, [np.array([0, 1]), np.array([2])])
    # Row 3 repeats row 0, row 5 repeats row 4, row 6 has no label.
    assert fresh.rows.tolist() == [4]
    assert fresh.name == "test (repeated pictures left out: 1)"
    with pytest.raises(DataError, match="used to make it"):
        untouched(samples, [np.array([2, 3])])
    with pytest.raises(NotEnoughDataError, match="No labelled sample"):
        untouched(samples.only(np.array([3, 6])), [np.array([0])])


def test_untouched__nothing_used_is_everything_once():
    samples = _test_set()
    assert untouched(samples, []).rows.tolist() == list(range(10))
    assert untouched(samples, []).name == "test"
