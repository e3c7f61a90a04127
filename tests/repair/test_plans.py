import json

import pytest
from tests.build import slice_of

from weakspot.core.errors import ConfigError
from weakspot.core.repairs import RepairPlan
from weakspot.repair.export import plan_text, plan_with, read_plan


def _plan(*slices):
    return plan_with(
        RepairPlan(slice_ids=tuple(found.slice_id for found in slices), repairer="up-weight"),
        slices,
    )


def test_plan_with__takes_the_slices_it_names():
    one, other = slice_of("green"), slice_of("wet")
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
    whole = json.loads(plan_text(_plan(slice_of("green"))))

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
