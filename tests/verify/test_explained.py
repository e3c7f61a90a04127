import numpy as np
import pytest

from weakspot.core.dataset import dataset_from_columns
from weakspot.core.errors import DataError
from weakspot.core.evidence import Verdict
from weakspot.core.failures import FailureCriterion
from weakspot.core.rules import IdRule
from weakspot.core.samples import SampleSet
from weakspot.core.slices import DataUse, FailureSlice
from weakspot.verify.explained import with_explanations
from weakspot.verify.holdout import HoldoutVerifier

TOP_1 = FailureCriterion()


@pytest.fixture
def samples():
    """A hundred cats: the first twenty fail on eighteen, the last twenty on fifteen, the others on every tenth."""
    failed = np.arange(100) % 10 == 0
    failed[:18], failed[18:20] = True, False
    failed[80:95], failed[95:] = True, False
    predictions = failed.astype(np.int64)
    dataset = dataset_from_columns(
        class_names=["cat", "dog"],
        labels=[0] * 100,
        predictions=predictions,
        sample_ids=[f"s{row:03d}" for row in range(100)],
    )
    return SampleSet(dataset=dataset, rows=np.arange(100), name="confirmation")


def _slice(method, *rows):
    use = DataUse(name="elsewhere", n_samples=0, digest="other")
    rule = IdRule(sample_ids=tuple(f"s{row:03d}" for row in rows))
    return FailureSlice(class_name="cat", rule=rule, method=method, found_on=use)


def _verified(samples, slices):
    nobody = samples.only(samples.rows[:0], name="discovery")
    evidence = HoldoutVerifier().verify(
        slices, discovery=nobody, confirmation=samples, criterion=TOP_1
    )
    assert {entry.verdict for entry in evidence} == {Verdict.CONFIRMED}
    return with_explanations(slices, evidence, samples, TOP_1)


def test_with_explanations__a_wider_slice_around_a_stronger_one(samples):
    core, wider, other = (
        _slice("core", *range(20)),
        _slice("wider", *range(35)),
        _slice("other", *range(80, 100)),
    )
    first, second, third = _verified(samples, [wider, core, other])
    assert first.explained is not None
    assert first.explained.slice_id == core.slice_id
    assert first.explained.shared_failures == pytest.approx(18 / 20)
    assert (first.explained.failures_inside, first.explained.n_inside) == (2, 15)
    assert (first.explained.failures_outside, first.explained.n_outside) == (4, 45)
    assert first.verdict is Verdict.CONFIRMED
    assert second.explained is None
    assert third.explained is None


def test_with_explanations__a_second_failure_beside_the_first_stays(samples):
    core, both = _slice("core", *range(20)), _slice("both", *range(5, 20), *range(80, 95))
    first, second = _verified(samples, [core, both])
    assert {first.explained is None, second.explained is None} == {True}


def test_with_explanations__one_entry_a_slice(samples):
    with pytest.raises(DataError, match="one entry"):
        with_explanations([_slice("core", 1, 2)], [], samples, TOP_1)
