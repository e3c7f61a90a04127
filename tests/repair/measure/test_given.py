import numpy as np
import pytest

from weakspot.core.dataset import dataset_from_columns
from weakspot.core.failures import FailureCriterion
from weakspot.core.repairs import RepairArm
from weakspot.core.samples import SampleSet
from weakspot.repair.measure import measure_arm
from weakspot.repair.spread import compare, measure_given

TOP_1 = FailureCriterion()
PLACES = ["land"] * 6 + ["water"] * 4 + ["land"] * 3 + ["water"] * 7
LABELS = [0] * 10 + [1] * 10
BEFORE = [0] * 6 + [1] * 4 + [0] * 3 + [1] * 7
AFTER = [0] * 5 + [1] + [0] * 3 + [1] + [1] * 10


def _samples(places=PLACES):
    dataset = dataset_from_columns(
        class_names=["landbird", "waterbird"],
        labels=LABELS,
        predictions=np.array(BEFORE),
        metadata={"place": places},
    )
    return SampleSet(dataset=dataset, rows=np.arange(20), name="test")


def _probabilities(predicted):
    return np.eye(2, dtype=np.float32)[predicted]


def _given(samples, predicted=AFTER, least_group=1):
    comparison = compare(samples, _probabilities(predicted), (), TOP_1, None)
    return measure_given(comparison, "place", least_group=least_group, seed=0)


def test_measure_given__worst_average_and_gap_by_hand():
    found = _given(_samples())
    table = {
        one.group: (one.n_samples, one.accuracy_before, one.accuracy_after) for one in found.groups
    }
    assert table == {
        "landbird, place land": (6, 1.0, pytest.approx(5 / 6)),
        "landbird, place water": (4, 0.0, 0.75),
        "waterbird, place land": (3, 0.0, 1.0),
        "waterbird, place water": (7, 1.0, 1.0),
    }
    assert (found.overall_before, found.overall_after) == (13 / 20, 18 / 20)
    spread = found.spread
    assert (spread.worst_before, spread.worst_after) == (0.0, 0.75)
    assert spread.worst_group == "landbird, place water"
    assert spread.gap_after == pytest.approx(0.9 - 0.75)
    assert spread.average_after == pytest.approx((5 / 6 + 0.75 + 1 + 1) / 4)


@pytest.mark.parametrize("places", [[None] * 20])
def test_measure_given__nobody_has_a_value(places):
    assert _given(_samples(places)) is None


def test_measure_given__no_such_column():
    comparison = compare(_samples(), _probabilities(AFTER), (), TOP_1, None)
    assert measure_given(comparison, "age", least_group=1, seed=0) is None


@pytest.mark.parametrize("slices", [0, 1])
def test_measure_arm__given_groups_are_the_same_for_every_arm_and_slice(make_slice, slices):
    # Whatever was repaired, by whomever, and whether it is a baseline: the same answers give the same figures.
    samples = _samples()
    found = [
        measure_arm(
            RepairArm(arm=name, is_baseline=is_baseline, note="", n_trained=n_trained, changes=()),
            _probabilities(AFTER),
            [make_slice(column="place", class_name="landbird")] * slices,
            samples,
            TOP_1,
            column="place",
        ).given
        for name, is_baseline, n_trained in (("slice-balanced", False, 9), ("plain", True, 0))
    ]
    assert found[0] == found[1]
    assert found[0].spread.worst_before == 1.0 or found[0].n_small == 2
    assert found[0] == measure_given(
        compare(samples, _probabilities(AFTER), (), TOP_1, None), "place", least_group=5, seed=0
    )
