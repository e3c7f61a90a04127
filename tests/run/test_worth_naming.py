import pytest

from weakspot.core.failures import FailureCriterion
from weakspot.core.samples import SampleSet
from weakspot.core.slices import SliceName
from weakspot.run import naming
from weakspot.run.settings import Settings
from weakspot.run.stage_clock import new_record
from weakspot.testing.examples import confirmation_samples, discovery_samples, example_slices
from weakspot.verify.holdout import HoldoutVerifier

CRITERION = FailureCriterion()


@pytest.mark.parametrize("order", [1, -1])
def test_worth_naming__many__those_that_stand_out(monkeypatch, order):
    monkeypatch.setattr(naming, "MAX_NAMED", 1)
    slices = example_slices()[::order]
    samples: SampleSet = discovery_samples()
    # The first example is of green discs, the other one harmless.
    assert naming.worth_naming(slices, samples, CRITERION) == example_slices()[:1]


def test_confirmed_without_words__what_was_left_out_and_is_confirmed(monkeypatch):
    slices = tuple(one.model_copy(update={"names": ()}) for one in example_slices())
    evidence = HoldoutVerifier().verify(
        slices,
        discovery=discovery_samples(),
        confirmation=confirmation_samples(),
        criterion=CRITERION,
    )
    record = new_record(Settings(), inputs={}, criterion="wrong").model_copy(
        update={"slices": slices, "evidence": evidence}
    )
    assert naming.confirmed_without_words(record) == frozenset()
    monkeypatch.setattr(naming, "MAX_NAMED", 1)
    assert naming.confirmed_without_words(record) == {slices[0].slice_id}
    name = SliceName(phrase="a green disc", contrast="green", score=1.0, describer="person")
    named = slices[0].model_copy(update={"names": (name,)})
    record = record.model_copy(update={"slices": (named, slices[1])})
    assert naming.confirmed_without_words(record) == frozenset()
