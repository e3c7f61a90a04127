"""A run as in the story of the herons: one class fails as a whole, because its evaluation images look unlike training."""

from weakspot.core.evidence import (
    Cause,
    CauseFinding,
    ClassFinding,
    ClassFindingKind,
    Evidence,
    Interval,
    Verdict,
)
from weakspot.core.rules import ColumnRule
from weakspot.core.run import (
    Advice,
    AdviceKind,
    CheckState,
    ClassifierFacts,
    PreflightCheck,
    RunRecord,
)
from weakspot.core.slices import DataUse, FailureSlice, SliceName

USE = DataUse(name="half", n_samples=104, digest="d")
CLASSES = {"crane": (52, 4), "gull": (52, 12), "heron": (52, 48), "owl": (52, 7)}


def class_finding(kind, class_name, sentence, *, verdict=Verdict.CONFIRMED, n_failed=0):
    return ClassFinding(
        kind=kind, class_name=class_name, sentence=sentence, verdict=verdict, n_failed=n_failed
    )


def slice_of(class_name, words, column="column"):
    name = SliceName(phrase=f"a photo, {words}", contrast=words, score=1.0, describer="hand")
    return FailureSlice(
        class_name=class_name,
        rule=ColumnRule(column=column, values=(words,)),
        method="attributes",
        found_on=USE,
        names=(name,),
    )


def evidence_of(found, verdict, *, cause=None, q_value=0.01):
    return Evidence(
        slice_id=found.slice_id, verifier="holdout", measured_on=USE, n_inside=12, failures_inside=9, n_outside=40,
        failures_outside=3, rate_inside=0.75, rate_outside=0.075, interval_inside=Interval(low=0.47, high=0.91),
        interval_outside=Interval(low=0.03, high=0.2), gap=0.675, p_value=q_value, q_value=q_value, n_tested=3, verdict=verdict,
        cause=None if cause is None else CauseFinding(cause=cause),
    )  # fmt: skip


def heron_record():
    night, snow = slice_of("gull", "at night"), slice_of("owl", "in the snow")
    return RunRecord(
        run_id="20260101T100000.000000-abcdef",
        command="weakspot run",
        started="2026-01-01T10:00:00Z",
        seed=0,
        settings={
            "classifier": {"name": "onnx", "options": {"path": "models/model.onnx"}},
            "verify": {"splits": ["validation"]},
            "failure": {"kind": "top-1"},
        },
        classifier=ClassifierFacts(
            n_samples=208,
            n_failed=71,
            per_class=CLASSES,
            confusions={"heron": (("crane", 44), ("gull", 4)), "gull": (("owl", 12),)},
            training=(400, 0),
            counted="images",
        ),
        slices=(night, snow),
        evidence=(
            evidence_of(night, Verdict.CONFIRMED, cause=Cause.RARE),
            evidence_of(snow, Verdict.TOO_FEW, q_value=1.0),
        ),
        checks=(
            PreflightCheck(check="class order", state=CheckState.OK, sentence="Names fit."),
            PreflightCheck(
                check="files",
                state=CheckState.NOTICE,
                sentence="3 of 90 files cannot be read.",
                short="3 files set aside",
            ),
        ),
        class_findings=(
            class_finding(ClassFindingKind.SHIFT, "heron", "heron looks unlike training."),
            class_finding(ClassFindingKind.WHOLE, "heron", "heron fails as a whole.", n_failed=48),
        ),
        advice=(Advice(kind=AdviceKind.LABEL, sentence="Label about 10: to_label.csv."),),
    )
