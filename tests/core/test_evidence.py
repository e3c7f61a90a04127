import numpy as np
import pytest
from pydantic import ValidationError
from tests import build

from weakspot.core.evidence import (
    Cause,
    CauseFinding,
    Evidence,
    Interval,
    LabelFinding,
    Share,
    Verdict,
    effect_size,
    sides_of,
)
from weakspot.core.failures import FailureCriterion, class_problems
from weakspot.core.rules import AllOfRule, AnyOfRule, IdRule, LinearRule
from weakspot.core.slices import DataUse, FailureSlice

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


def test_named_cause__suspect_labels_come_before_what_training_tells():
    share = Share.of(3, 4)
    flagged = LabelFinding(
        n_suspect=3, share=0.75, inside=share, outside=share, witnesses=(), is_flagged=True
    )
    suspect = EVIDENCE.model_copy(update={"labels": flagged})
    unknown = EVIDENCE.model_copy(update={"cause": None})
    assert [one.named_cause for one in (EVIDENCE, suspect, unknown)] == [
        Cause.RARE,
        Cause.LABELS,
        None,
    ]


def test_evidence__closed_and_frozen():
    with pytest.raises(ValidationError, match="frozen"):
        EVIDENCE.gap = 0.1
    with pytest.raises(ValidationError, match="Extra inputs"):
        Evidence.model_validate({**EVIDENCE.model_dump(), "mood": "good"})
    with pytest.raises(ValidationError, match="verdict"):
        Evidence.model_validate({**EVIDENCE.model_dump(), "verdict": "perhaps"})


def test_share__of_counts_and_of_nothing():
    share = Share.of(8, 10)
    assert share.value == 0.8
    assert (share.interval.low, share.interval.high) == pytest.approx(
        (0.490162, 0.943318), abs=1e-6
    )
    assert Share.of(0, 0) == Share(
        count=0, total=0, value=0.0, interval=Interval(low=0.0, high=1.0)
    )


def test_effect_size__ratio_and_its_absence():
    effect = effect_size((15, 50, 45, 450))
    assert effect.risk_ratio == pytest.approx(3.0)
    assert effect.cohens_h == pytest.approx(0.5158, abs=1e-4)
    assert effect_size((5, 10, 0, 20)).risk_ratio is None
    assert effect_size((0, 0, 3, 20)) is None


def test_sides_of__samples_without_embeddings_are_on_neither_side():
    embeddings = np.array([[1.0], [1.0], [-1.0], [-1.0], [np.nan]], dtype=np.float32)
    samples = build.samples(
        [0] * 5, class_names=["a", "b"], predictions=[1, 0, 1, 0, 1], embeddings=embeddings
    )
    rule = LinearRule(encoder_id="toy", direction=(1.0,))
    found = FailureSlice(class_name="a", rule=rule, method="hand", found_on=DataUse.of(samples))
    problems = class_problems(samples.dataset, samples.rows, FailureCriterion())
    sides = sides_of(found, samples, problems)
    assert sides.table == (1, 2, 1, 2)
    assert sides.outside.tolist() == [False, False, True, True, False]
    assert sides_of(found.model_copy(update={"class_name": "b"}), samples, problems).table == (
        0,
        0,
        0,
        0,
    )
    listed = IdRule(sample_ids=tuple(samples.dataset.sample_ids()[:3]))
    assert sides_of(found.model_copy(update={"rule": listed}), samples, problems).table == (
        2,
        3,
        1,
        2,
    )
    both = found.model_copy(update={"rule": AllOfRule(rules=(rule, listed))})
    assert sides_of(both, samples, problems).table == (1, 2, 1, 2)
    either = found.model_copy(update={"rule": AnyOfRule(rules=(rule, listed))})
    assert sides_of(either, samples, problems).outside.tolist() == [
        False,
        False,
        False,
        True,
        False,
    ]
    everybody = found.model_copy(
        update={
            "rule": AnyOfRule(rules=(rule, IdRule(sample_ids=tuple(samples.dataset.sample_ids()))))
        }
    )
    assert sides_of(everybody, samples, problems).inside.all()
