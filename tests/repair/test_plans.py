import json

import numpy as np
import pytest

from weakspot.core.errors import ConfigError
from weakspot.core.repairs import RepairPlan
from weakspot.core.rules import ColumnRule, LinearRule
from weakspot.core.slices import DataUse, FailureSlice
from weakspot.repair.export import plan_text, plan_with, read_plan

USE = DataUse(name="given", n_samples=0, digest="given")


def _slice(column="green", **changes):
    rule = ColumnRule(column=column, values=(True,))
    return FailureSlice(
        **{"class_name": "apple", "rule": rule, "method": "hand", "found_on": USE, **changes}
    )


def _plan(*slices):
    return plan_with(
        RepairPlan(slice_ids=tuple(found.slice_id for found in slices), repairer="up-weight"),
        slices,
    )


def test_read_plan__gives_what_was_written(tmp_path):
    direction = tuple(np.random.default_rng(0).standard_normal(16).tolist())
    linear = _slice(
        rule=LinearRule(encoder_id="e", direction=direction, threshold=0.1), strength=float("inf")
    )
    plan = _plan(linear, _slice())
    (tmp_path / "plan.json").write_text(plan_text(plan))
    found = read_plan(tmp_path / "plan.json")
    assert found == plan
    assert [one.slice_id for one in found.slices] == list(plan.slice_ids)


def test_plan_with__takes_the_slices_it_names():
    one, other = _slice(), _slice("wet")
    plan = RepairPlan(slice_ids=(other.slice_id,), repairer="up-weight")
    assert plan_with(plan, [one, other]).slices == (other,)
    with pytest.raises(ConfigError, match=f"not there.*{other.slice_id}"):
        plan_with(plan, [one])


def test_read_plan__problems(tmp_path):
    path = tmp_path / "plan.json"
    with pytest.raises(ConfigError, match="cannot be read: No such file"):
        read_plan(path)
    with pytest.raises(ConfigError, match="cannot be read: Is a directory"):
        read_plan(tmp_path)
    whole = json.loads(plan_text(_plan(_slice())))

    def changed(**fields):
        return whole | {"plan": whole["plan"] | fields}

    for content, message in (
        ("{", "is no JSON"),
        ("[]", "no repair plan"),
        (json.dumps({"slices": []}), "no repair plan"),
        (json.dumps(whole | {"version": 2}), "another version than 1.*2"),
        (json.dumps(whole | {"extra": 1}), r"unknown fields.*\['extra'\]"),
        (json.dumps(changed(colour="red")), "colour: Extra inputs are not permitted"),
        (json.dumps(changed(budget="many")), "budget: Input should be a valid integer"),
        (
            json.dumps({key: value for key, value in whole.items() if key != "plan"}),
            "plan: Input should be an object",
        ),
        (json.dumps(changed(slices=[])), "holds no slices"),
        (json.dumps(changed(slice_ids=["abc"])), "one of the two was edited"),
    ):
        path.write_text(content)
        with pytest.raises(ConfigError, match=message):
            read_plan(path)
    path.write_bytes(b"\xff\xfe")
    with pytest.raises(ConfigError, match="is no JSON"):
        read_plan(path)
