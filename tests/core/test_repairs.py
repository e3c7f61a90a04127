import numpy as np
import pytest

from weakspot.core.evidence import Interval
from weakspot.core.repairs import GroupChange, GroupKind, RepairArm, RepairPlan, RepairResult
from weakspot.core.slices import DataUse

USE = DataUse(name="test", n_samples=10, digest="0" * 32)
HALF = Interval(low=0.2, high=0.8)


def _change(**other):
    given = {
        "group": "all",
        "kind": GroupKind.OVERALL,
        "n_samples": 10,
        "right_before": 4,
        "right_after": 7,
        "gained": 4,
        "lost": 1,
    }
    return GroupChange(interval_before=HALF, interval_after=HALF, p_value=0.4, **{**given, **other})


def _arm(name, **other):
    return RepairArm(
        arm=name,
        is_baseline=name != "slice-balanced",
        note="n",
        n_trained=3,
        **{"changes": (_change(),), **other},
    )


def test_group_change__accuracies():
    change = _change()
    assert (change.accuracy_before, change.accuracy_after) == (0.4, 0.7)
    assert change.change == pytest.approx(0.3)
    assert np.isnan(_change(n_samples=0, right_before=0, right_after=0).change)


def test_repair_arm__change_of_a_kind_and_a_group():
    arm = _arm(
        "plain",
        changes=(
            _change(),
            _change(kind=GroupKind.SLICE, group="disc: green"),
            _change(kind=GroupKind.SLICE, group="disc: dark", right_after=2),
        ),
    )
    assert arm.change_of(GroupKind.SLICE).group == "disc: green"
    assert arm.change_of(GroupKind.SLICE, "disc: dark").right_after == 2
    assert arm.change_of(GroupKind.SLICE, "disc: red") is None
    assert arm.change_of(GroupKind.CLASS) is None


def test_repair_prediction__the_repair_among_its_baselines():
    plan = RepairPlan(
        slice_ids=("abc",), repairer="slice-balanced", parameters={"x": 1}, trained_on=USE
    )
    result = RepairResult(plan=plan, measured_on=USE, arms=(_arm("random"), _arm("slice-balanced")))
    assert result.repaired.arm == "slice-balanced"
    assert RepairResult.model_validate_json(result.model_dump_json()) == result
