import csv

import pytest

from weakspot.core.repairs import GroupKind, RepairPlan
from weakspot.repair.advice.kinds import best_repair
from weakspot.repair.advice.stage import recommended_plan, selection_of, write_weights


@pytest.fixture
def measured(sliced, make_change, make_result):
    """Return a run whose slice was repaired, and what was measured of it."""

    def build(method, gained, **more):
        kind = sliced.kind()
        change = make_change(kind.title, GroupKind.SLICE, gained, p_value=0.01 if gained else 1.0)
        result = make_result(method, change, slice_ids=(kind.subject,), **more)
        record = sliced.record.model_copy(update={"repairs": (result,)})
        return record, best_repair(record, kind)

    return build


def test_recommended_plan__only_what_was_measured_to_help_by_weights_alone(measured):
    record, helps = measured("slice-balanced", 9)
    assert recommended_plan(record, [helps]).repairer == "slice-balanced"
    for method, gained, n_added in (("slice-balanced", 0, 0), ("pool-deepest", 9, 5)):
        record, one = measured(method, gained, n_added=n_added)
        assert recommended_plan(record, [one]) is None


def test_write_weights__the_selection_of_the_strategy_and_nothing_stale(sliced, measured, tmp_path):
    record, helps = measured("slice-balanced", 9)
    chosen = selection_of(helps.plan, record, sliced.prepared)
    assert write_weights(tmp_path, chosen, sliced.dataset)
    with (tmp_path / "training_weights.csv").open(newline="") as stream:
        lines = list(csv.DictReader(stream))
    assert len(lines) == 183
    weights = {line["sample_id"]: float(line["weight"]) for line in lines}
    inside = sum(weights[name] for name in sliced.dataset.sample_ids(sliced.kind().training))
    herons = sum(float(line["weight"]) for line in lines if line["label"] == "heron")
    assert inside == pytest.approx(herons / 2)
    assert not write_weights(tmp_path, None, sliced.dataset)
    assert list(tmp_path.iterdir()) == []


def test_selection_of__what_cannot_be_weighed_is_none(plant):
    bare = plant(form="slice", n_known=0)
    plan = RepairPlan(slice_ids=(bare.kind().subject,), repairer="slice-balanced")
    assert selection_of(plan, bare.record, bare.prepared) is None
