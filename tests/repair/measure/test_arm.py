import numpy as np
import pytest

from weakspot.core.dataset import dataset_from_columns
from weakspot.core.failures import FailureCriterion
from weakspot.core.group_tests import group_interval
from weakspot.core.repairs import RepairArm
from weakspot.core.samples import SampleSet
from weakspot.core.statistics import mcnemar_p
from weakspot.repair.measure import measure_arm

ARM = RepairArm(arm="x", is_baseline=False, note="n", n_trained=1, changes=())


def _changes(groups, slices):
    """Ten objects of four images, five green; green ones are wrong before and right after, and so is one other."""
    place = np.arange(10).repeat(4)
    before = (place < 6).astype(np.int64)
    dataset = dataset_from_columns(
        class_names=["apple", "pear"],
        labels=[0] * 40,
        predictions=before,
        metadata={"green": (place < 5).tolist()},
        groups=[f"object {one}" for one in place] if groups else None,
    )
    samples = SampleSet(dataset=dataset, rows=np.arange(40))
    probabilities = np.tile(np.array([1.0, 0.0], dtype=np.float32), (40, 1))
    measured = measure_arm(ARM, probabilities, slices, samples, FailureCriterion())
    return {one.group: one for one in measured.changes}


def test_group_changes__objects_are_counted_where_several_images_show_one(make_slice):
    single, told = (_changes(groups, [make_slice()]) for groups in (False, True))
    title = next(name for name, one in told.items() if one.kind.value == "slice")
    assert (told[title].gained, told[title].lost) == (20, 0)
    assert single[title].p_value == mcnemar_p(20, 0)
    assert told[title].p_value == pytest.approx(mcnemar_p(5, 0))
    assert told["overall"].p_value == pytest.approx(mcnemar_p(6, 0))
    assert told["apple"].p_value == pytest.approx(mcnemar_p(6, 0))
    assert told["formerly wrong"].p_value == 1.0
    low, high = group_interval(40, 40, 10.0)
    after = told["overall"].interval_after
    assert (after.low, after.high) == pytest.approx((low, high))
    assert single["overall"].interval_after.low > after.low


def test_group_changes__a_patient_may_be_in_several_classes():
    """Six patients with an image of either class, all of them gained together."""
    dataset = dataset_from_columns(
        class_names=["apple", "pear"],
        labels=[0] * 6 + [1] * 6,
        predictions=np.array([1] * 6 + [0] * 6),
        groups=[f"patient {one % 6}" for one in range(12)],
    )
    probabilities = np.eye(2, dtype=np.float32)[[0] * 6 + [1] * 6]
    samples = SampleSet(dataset=dataset, rows=np.arange(12))
    overall = measure_arm(ARM, probabilities, [], samples, FailureCriterion()).changes[0]
    assert overall.n_groups == 6
    assert overall.p_value == pytest.approx(mcnemar_p(6, 0))
    apples = next(
        one
        for one in measure_arm(ARM, probabilities, [], samples, FailureCriterion()).changes
        if one.group == "apple"
    )
    assert apples.n_groups is None
