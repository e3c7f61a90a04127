"""The record of a run for tests of trackers: one slice, one repair, settings with a secret in them."""

from tests.tools.made_bundle import made_bundle

from weakspot.core.evidence import Interval
from weakspot.core.repairs import GroupChange, GroupKind, RepairArm, RepairPlan, RepairResult
from weakspot.core.run import ClassifierFacts, RunRecord
from weakspot.core.slices import DataUse

RUN_ID = "20261116-120000-abcd"
SETTINGS = {
    "data": {"source": "https://me:hunter2@example.org/a.csv?signature=abc"},
    "classifier": {"options": {"api_token": "hunter2", "batch_size": 8, "layers": [1, 2]}},
    "note": "x" * 2_000,
}
CARD = "---\nmodel-index:\n  - name: m\n---\n\n# Card\n"


def made_record(slices, **changes) -> RunRecord:
    """Return a record with the slices of a bundle."""
    measured = DataUse(name="test", n_samples=10, digest="2")
    interval = Interval(low=0.0, high=1.0)
    change = GroupChange(
        group="disc: green",
        kind=GroupKind.SLICE,
        n_samples=10,
        right_before=1,
        right_after=8,
        gained=7,
        lost=0,
        interval_before=interval,
        interval_after=interval,
        p_value=0.01,
    )
    empty = change.model_copy(update={"group": "nobody", "n_samples": 0})
    arm = RepairArm(
        arm="slice-balanced", is_baseline=False, note="", n_trained=9, changes=(change, empty)
    )
    given = {
        "run_id": RUN_ID,
        "command": "weakspot run",
        "started": "2026-11-16T12:00:00+00:00",
        "seed": 3,
        "settings": SETTINGS,
        "versions": {"weakspot": "0.1.0"},
        "inputs": {"data set": "aa11", "classifier": "bb22"},
        "criterion": "the prediction is wrong",
        "classifier": ClassifierFacts(
            n_samples=30, n_failed=10, per_class={"disc": (20, 9), "square": (10, 1)}
        ),
        "slices": tuple(marked.found for marked in slices),
        "evidence": tuple(marked.evidence for marked in slices),
        "repairs": (
            RepairResult(
                plan=RepairPlan(slice_ids=(), repairer="slice-balanced"),
                measured_on=measured,
                arms=(arm,),
            ),
        ),
    }
    return RunRecord(**{**given, **changes})


def bundle_with_run(folder, **changes):
    """Return the small bundle with a run, a report and a model card."""
    slices = made_bundle(folder / "images").slices
    report = folder / "report.md"
    report.write_text("# Report\n")
    record = made_record(slices, **changes)
    return made_bundle(folder / "images", record=record, model_card=CARD, report_files=(report,))
