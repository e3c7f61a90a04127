import pytest

from weakspot.core.errors import ConfigError
from weakspot.core.evidence import Evidence, Interval, Verdict
from weakspot.core.repairs import RepairPlan
from weakspot.core.rules import IdRule
from weakspot.core.run import RunRecord
from weakspot.core.slices import DataUse, FailureSlice
from weakspot.repair.slice_choice import are_exploratory, chosen_slices

USE = DataUse(name="test", n_samples=3, digest="0" * 32)


def _slice(name):
    return FailureSlice(class_name=name, rule=IdRule(sample_ids=(name,)), method="m", found_on=USE)


CAT, DOG = _slice("cat"), _slice("dog")


@pytest.fixture
def record():
    """A run in which only the cats were confirmed."""
    whole = Interval(low=0.0, high=1.0)
    evidence = [
        Evidence(
            slice_id=found.slice_id, verifier="holdout", measured_on=USE, n_inside=1, failures_inside=1, n_outside=2,
            failures_outside=0, rate_inside=1.0, rate_outside=0.0, interval_inside=whole, interval_outside=whole, gap=0.5,
            p_value=0.01, q_value=0.02, n_tested=3, verdict=verdict,
        )
        for found, verdict in ((CAT, Verdict.CONFIRMED), (DOG, Verdict.NOT_CONFIRMED))
    ]  # fmt: skip
    return RunRecord(
        run_id="r", command="", started="", seed=0, slices=(CAT, DOG), evidence=tuple(evidence)
    )


def test_chosen_slices__confirmed_ones_only(record):
    assert chosen_slices(record, ()) == (CAT,)
    with pytest.raises(ConfigError, match="no confirmed slice"):
        chosen_slices(record, (DOG.slice_id,))


def test_chosen_slices__exploratory__unconfirmed_ones_by_name(record):
    assert chosen_slices(record, (DOG.slice_id[:10],), is_exploratory=True) == (DOG,)
    with pytest.raises(ConfigError, match="slices that are named"):
        chosen_slices(record, (), is_exploratory=True)
    with pytest.raises(ConfigError, match="no slice, or several"):
        chosen_slices(record, ("ffffffffffff0",), is_exploratory=True)


def test_are_exploratory__one_unconfirmed_slice_is_enough(record):
    assert not are_exploratory(record, [CAT], None)
    assert are_exploratory(record, [CAT, DOG], None)
    plan = RepairPlan(slice_ids=(CAT.slice_id,), repairer="plain", is_exploratory=True)
    assert are_exploratory(record, [CAT], plan)
