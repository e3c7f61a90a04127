import numpy as np
import pytest
from tests.build import evidence_of, slice_name, slice_of

from weakspot.core.evidence import (
    Cause,
    CauseFinding,
    ConfusedWith,
    Interval,
    LabelFinding,
    Measurement,
    Share,
    Spread,
    Verdict,
    effect_size,
)
from weakspot.core.repairs import (
    Aftermath,
    ArmMeasurement,
    GroupChange,
    GroupKind,
    LabellingRequest,
    RepairArm,
    RepairPlan,
    RepairResult,
    SliceAfter,
    SliceStatus,
)
from weakspot.core.run import ClassifierFacts, ClassNote, MethodRecord, RunRecord, StageRecord
from weakspot.core.slices import DataUse
from weakspot.core.statistics import mcnemar_p, wilson_interval

USE = DataUse(name="validation, confirmation half", n_samples=51, digest="d")


def _slice(class_name, column, contrast):
    names = (
        slice_name(
            contrast,
            phrase=f"a photo of a {contrast} {class_name}",
            score=2.0,
            describer="caption-grammar",
            accuracy_nearest=0.38,
        ),
        slice_name("old", phrase="a photo of old", describer="caption-grammar", is_doubtful=True),
    )
    return slice_of(
        column,
        class_name=class_name,
        method="directions",
        found_on=USE,
        strength=0.88,
        strength_p=0.005,
        names=names,
        easy_names=names[1:],
    )


def _evidence(found, verdict, *, inside, outside, q_value=0.00001, **more):
    return evidence_of(
        found,
        verdict,
        inside=inside,
        outside=outside,
        q_value=q_value,
        measured_on=USE,
        interval_inside=Interval(low=0.52, high=0.87),
        interval_outside=Interval(low=0.01, high=0.17),
        **more,
    )


def _wilson(right, n_samples):
    low, high = wilson_interval(right, n_samples)
    return Interval(low=low, high=high)


def _change(group, kind, n_samples, before, after):
    return GroupChange(
        group=group,
        kind=kind,
        n_samples=n_samples,
        right_before=before,
        right_after=after,
        gained=max(0, after - before),
        lost=max(0, before - after),
        interval_before=_wilson(before, n_samples),
        interval_after=_wilson(after, n_samples),
        p_value=mcnemar_p(max(0, after - before), max(0, before - after)),
    )


def _arm(name, *, is_baseline, on_slice, overall, pear):
    return RepairArm(
        arm=name,
        is_baseline=is_baseline,
        note=f"What {name} did.",
        n_trained=135,
        changes=(
            _change("overall", GroupKind.OVERALL, 92, 77, overall),
            _change("apple: green", GroupKind.SLICE, 15, 1, on_slice),
            _change("apple: the rest", GroupKind.COMPLEMENT, 0, 0, 0),
            _change("apple", GroupKind.CLASS, 56, 41, 49),
            _change("pear", GroupKind.CLASS, 36, 36, pear),
            _change("melon", GroupKind.CLASS, 10, 9, 9),
        ),
        got_worse=("pear",) if pear < 36 else (),
    )


@pytest.fixture
def record():
    """A run with one confirmed slice, one that is not, a repair with two baselines, and hostile names."""
    green = _slice("apple", "green", "green")
    hostile = _slice('<script>alert("x")</script>', "odd", "<b>bold</b> | pipe")
    cause = CauseFinding(
        cause=Cause.RARE,
        share_training=0.12,
        share_evaluation=0.43,
        sentence="Such samples are few.",
    )
    return RunRecord(
        run_id="20260101-abcdef",
        command="weakspot run",
        started="2026-01-01T10:00:00Z",
        seed=0,
        settings={
            "classifier": {
                "options": {"api_key": "hunter2", "url": "https://me:pw@host.example/v1"}
            },
            "costs": [1, 2],
        },
        versions={"weakspot": "0.1.0"},
        inputs={"classifier": "onnx:1234"},
        stages=(StageRecord(stage="discover", seconds=1.25, summary="Two slices."),),
        criterion="the predicted label is not the true one",
        classifier=ClassifierFacts(
            n_samples=148, n_failed=36, per_class={"apple": (103, 35), "pear": (45, 1)}
        ),
        slices=(hostile, green),
        evidence=(
            _evidence(hostile, Verdict.NOT_CONFIRMED, inside=(2, 8), outside=(5, 40), q_value=0.31),
            _evidence(green, Verdict.CONFIRMED, inside=(16, 22), outside=(1, 29), cause=cause),
        ),
        repairs=(
            RepairResult(
                plan=RepairPlan(slice_ids=(green.slice_id,), repairer="slice-balanced"),
                measured_on=DataUse(name="test split", n_samples=92, digest="t"),
                arms=(
                    _arm("random", is_baseline=True, on_slice=6, overall=80, pear=36),
                    _arm("slice-balanced", is_baseline=False, on_slice=10, overall=83, pear=34),
                    _arm("confidence", is_baseline=True, on_slice=9, overall=77, pear=28),
                ),
            ),
        ),
        notes=(ClassNote(class_name="melon", note="Too few failures."),),
    )


def _use(name):
    return USE.model_copy(update={"name": name})


@pytest.fixture
def full_record(record):
    """The same run with everything that can be said of a finding: labels, other data, a repeated slice, a curve, methods."""
    hostile, green = record.slices
    curve = ((10, 0.2), (20, 0.35), (40, 0.6))
    first, second = green.names
    names = (
        first.model_copy(update={"curve": curve, "witness": "captions", "witness_score": 0.4}),
        second.model_copy(update={"witness": "captions", "witness_score": -0.1}),
    )
    green = green.model_copy(
        update={
            "names": names,
            "easy_names": (first.model_copy(update={"contrast": "red", "curve": curve}),),
        }
    )
    again = green.model_copy(update={"method": "attributes", "names": ()})
    by_loss = _slice("pear", "loss", "high loss")
    share = Share.of(16, 22)
    confused_with = ConfusedWith(
        answer="pear", inside=share, outside=Share.of(1, 29), among_failures=Share.of(16, 16),
        among_other_failures=Share.of(1, 1), p_value=0.0001, is_real=True, sentence="apple: green become pear.",
    )  # fmt: skip
    unproven, proven = record.evidence
    proven = proven.model_copy(
        update={
            "cause": proven.cause.model_copy(update={"confused_with": confused_with}),
            "effect": effect_size((16, 22, 1, 29)),
            "labels": LabelFinding(
                n_suspect=9, share=9 / 16, inside=Share.of(9, 16), outside=Share.of(0, 1), witnesses=("neighbours",),
                is_flagged=True, sentence="9 of 16 failures inside look like wrong labels.",
            ),
            "elsewhere": (
                Measurement(measured_on=_use("test split"), inside=share, outside=Share.of(2, 30), gap=0.66),
                Measurement(measured_on=_use("pool"), inside=Share.of(0, 0), outside=share, gap=0.0),
            ),
        }
    )  # fmt: skip
    same = _evidence(again, Verdict.SAME, inside=(16, 22), outside=(1, 29), q_value=1.0)
    circular = _evidence(by_loss, Verdict.CIRCULAR, inside=(3, 9), outside=(1, 9), q_value=1.0)
    evidence = (unproven, proven, same.model_copy(update={"same_as": green.slice_id}), circular)
    methods = (
        MethodRecord(method="directions", seconds=1.0, n_considered=7, n_found=2, n_tested=2),
        *(
            MethodRecord(method="attributes", note="No answerer.", **counts)
            for counts in (
                {"seconds": 2.0, "n_considered": 1_200, "n_found": 30, "n_tested": 1},
                {"seconds": 1.0, "n_considered": 800, "n_found": 20},
            )
        ),
    )
    return record.model_copy(
        update={
            "slices": (hostile, green, again, by_loss),
            "evidence": tuple(
                entry.model_copy(update={"correction": "fwer"}) for entry in evidence
            ),
            "methods": methods,
        }
    )


def _halves(gained, lost):
    """An arm on the discovery and confirmation halves: 50 samples each, 40 of them right before."""
    changes = (_change("overall", GroupKind.OVERALL, 50, 40, 40 + gained - lost),)
    moved = tuple(change.model_copy(update={"gained": gained, "lost": lost}) for change in changes)
    names = ("validation, discovery half", "validation, confirmation half")
    return tuple(
        ArmMeasurement(measured_on=DataUse(name=name, n_samples=50, digest=name), changes=moved)
        for name in names
    )


@pytest.fixture
def compared_record(record):
    """The same run with three strategies: one with everything that can be said, one reference, one that waits for labels."""
    (result,) = record.repairs
    spread = Spread(
        worst_group="apple: green", worst_before=0.07, worst_after=0.67, average_before=0.6, average_after=0.8, gap_before=0.77,
        gap_after=0.23, worst_change=Interval(low=0.3, high=0.8), gap_change=Interval(low=-0.75, high=-0.2),
    )  # fmt: skip
    former = (
        _change("formerly right", GroupKind.FORMERLY_RIGHT, 77, 77, 75),
        _change("formerly wrong", GroupKind.FORMERLY_WRONG, 15, 0, 8),
    )
    random, repaired, confidence = result.arms
    repaired = repaired.model_copy(
        update={
            "changes": repaired.changes + former,
            "spread": spread,
            "elsewhere": _halves(6, 2),
            "temperature": 1.4,
            "calibration_before": 0.081,
            "calibration_after": 0.032,
            "n_added": 30,
            "n_synthetic": 5,
        }
    )
    random = random.model_copy(
        update={
            "elsewhere": _halves(1, 1),
            "spread": spread.model_copy(update={"worst_after": 0.4}),
        }
    )
    again = (
        SliceAfter(
            title="apple: green", slice_id="a", status=SliceStatus.GONE, failures_before=16, failures_after=2, n_members=22
        ),
        SliceAfter(
            title="pear: old", slice_id="b", status=SliceStatus.NEW, failures_before=3, failures_after=9, n_members=12, q_value=0.03
        ),
    )  # fmt: skip
    full = result.model_copy(
        update={
            "arms": (repaired, random, confidence),
            "aftermath": Aftermath(
                measured_on=USE, slices=again, n_tested=4, note="One method was left out."
            ),
            "files": ("repair/model.onnx", "repair/plan.json"),
            "notes": ("Zero-shot prompts need an embedder.",),
        }
    )
    reference = result.model_copy(
        update={
            "plan": RepairPlan(slice_ids=result.plan.slice_ids, repairer="group-dro"),
            "arms": (_arm("group-dro", is_baseline=True, on_slice=12, overall=70, pear=30), random),
        }
    )
    waiting = result.model_copy(
        update={
            "plan": RepairPlan(
                slice_ids=result.plan.slice_ids, repairer="pool-budgeted", budget=60
            ),
            "arms": (),
            "labelling": LabellingRequest(
                file="labels.csv", image_list="labels.txt", n_samples=60, n_labelled=10
            ),
        }
    )
    return record.model_copy(update={"repairs": (full, reference, waiting)})


@pytest.fixture
def jpeg():
    from io import BytesIO

    from PIL import Image

    stream = BytesIO()
    Image.fromarray(np.full((8, 8, 3), 200, dtype=np.uint8)).save(stream, "JPEG")
    return stream.getvalue()
