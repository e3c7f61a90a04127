import pytest

from weakspot.core.evidence import Evidence, Interval, Verdict
from weakspot.core.rules import IdRule
from weakspot.core.run import (
    RECORD_VERSION,
    ClassifierFacts,
    ClassNote,
    RunRecord,
    StageRecord,
    no_progress,
)
from weakspot.core.slices import DataUse, FailureSlice

USE = DataUse(name="test", n_samples=3, digest="0" * 32)


def _slice(name):
    return FailureSlice(class_name=name, rule=IdRule(sample_ids=(name,)), method="m", found_on=USE)


def _evidence(found, gap, verdict):
    return Evidence(
        slice_id=found.slice_id,
        verifier="holdout",
        measured_on=USE,
        n_inside=1,
        failures_inside=1,
        n_outside=2,
        failures_outside=0,
        rate_inside=1.0,
        rate_outside=0.0,
        interval_inside=Interval(low=0.0, high=1.0),
        interval_outside=Interval(low=0.0, high=1.0),
        gap=gap,
        p_value=0.01,
        q_value=0.02,
        n_tested=3,
        verdict=verdict,
    )


@pytest.fixture
def record():
    cat, dog, owl = (_slice(name) for name in ("cat", "dog", "owl"))
    verdicts = (
        _evidence(cat, 0.2, Verdict.CONFIRMED),
        _evidence(dog, 0.9, Verdict.TOO_FEW),
        _evidence(owl, 0.5, Verdict.CONFIRMED),
    )
    return RunRecord(
        run_id="2026-01-01-abc",
        command="weakspot run",
        started="2026-01-01T00:00:00+00:00",
        seed=3,
        settings={"failure": {"kind": "top-1"}, "k": [1, 2.5, None, True]},
        stages=(StageRecord(stage="embed", seconds=1.5, summary="3 images"),),
        classifier=ClassifierFacts(n_samples=3, n_failed=1, per_class={"cat": (3, 1)}),
        slices=(cat, dog, owl),
        evidence=verdicts,
        notes=(ClassNote(class_name="cat", note="few"),),
    )


def test_published__confirmed_ones_largest_gap_first(record):
    assert [found.class_name for found, _ in record.published()] == ["owl", "cat"]
    assert [entry.gap for _, entry in record.published()] == [0.5, 0.2]


def test_slice_by_id__the_slice(record):
    assert record.slice_by_id(record.evidence[1].slice_id).class_name == "dog"


def test_run_record__survives_json(record):
    again = RunRecord.model_validate_json(record.model_dump_json())
    assert again == record
    assert again.record_version == RECORD_VERSION == 2
    assert again.published() == record.published()


def test_no_progress__takes_anything():
    assert no_progress(3, None) is None
