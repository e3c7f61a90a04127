import pytest
from pydantic import ValidationError

from weakspot.core.evidence import Cause, CauseFinding, Evidence, Interval, Verdict
from weakspot.core.slices import DataUse

EVIDENCE = Evidence(
    slice_id="abc",
    verifier="holdout",
    measured_on=DataUse(name="test", n_samples=30, digest="0" * 32),
    n_inside=10,
    failures_inside=8,
    n_outside=20,
    failures_outside=2,
    rate_inside=0.8,
    rate_outside=0.1,
    interval_inside=Interval(low=0.49, high=0.94),
    interval_outside=Interval(low=0.03, high=0.3),
    gap=0.7,
    p_value=0.0003,
    q_value=0.0006,
    n_tested=2,
    verdict=Verdict.CONFIRMED,
    cause=CauseFinding(cause=Cause.RARE, share_training=0.02, share_evaluation=0.3),
)


def test_evidence__survives_json():
    again = Evidence.model_validate_json(EVIDENCE.model_dump_json())
    assert again == EVIDENCE
    assert again.verdict is Verdict.CONFIRMED
    assert again.cause.cause is Cause.RARE
    assert again.interval_inside.level == 0.95


def test_evidence__closed_and_frozen():
    with pytest.raises(ValidationError, match="frozen"):
        EVIDENCE.gap = 0.1
    with pytest.raises(ValidationError, match="Extra inputs"):
        Evidence.model_validate({**EVIDENCE.model_dump(), "mood": "good"})
    with pytest.raises(ValidationError, match="verdict"):
        Evidence.model_validate({**EVIDENCE.model_dump(), "verdict": "perhaps"})
