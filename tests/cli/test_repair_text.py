import pytest

from weakspot.cli.results import comparison_lines, repair_lines, what_to_do, whole_run
from weakspot.core.evidence import Interval, Spread
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
from weakspot.core.run import Advice, AdviceKind, ClassNote, RunRecord
from weakspot.core.slices import DataUse
from weakspot.core.statistics import mcnemar_p, wilson_interval

TEST = DataUse(name="test samples", n_samples=1_200, digest="t")
SEED = DataUse(name="validation, discovery half", n_samples=80, digest="s")


def _interval(right, n_samples):
    low, high = wilson_interval(right, n_samples)
    return Interval(low=low, high=high)


def _change(group, kind, n_samples, before, gained, lost):
    after = before + gained - lost
    return GroupChange(
        group=group, kind=kind, n_samples=n_samples, right_before=before, right_after=after, gained=gained, lost=lost,
        interval_before=_interval(before, n_samples), interval_after=_interval(after, n_samples), p_value=mcnemar_p(gained, lost),
    )  # fmt: skip


def _arm(name, gained, *, is_baseline=True, n_slices=1, **more):
    titles = [
        f"a class with a long name: a kind of sample that takes many words {number}"
        for number in range(n_slices)
    ]
    slices = [_change(title, GroupKind.SLICE, 40, 10, gained, 0) for title in titles]
    return RepairArm(
        arm=name,
        is_baseline=is_baseline,
        note="Done.",
        n_trained=900,
        changes=(
            _change("overall", GroupKind.OVERALL, 1_200, 1_000, gained, 2),
            *slices,
            _change("apple: the rest", GroupKind.COMPLEMENT, 300, 280, 1, 2),
            _change("pear", GroupKind.CLASS, 400, 390, 0, 10),
        ),
        got_worse=("apple: the rest", "pear"),
        **more,
    )


def _result(method, *arms, **more):
    return RepairResult(
        plan=RepairPlan(slice_ids=("a",), repairer=method), measured_on=TEST, arms=arms, **more
    )


def _record(*repairs, notes=()):
    return RunRecord(
        run_id="r",
        command="c",
        started="2026-01-01T00:00:00Z",
        seed=0,
        repairs=repairs,
        notes=notes,
    )


@pytest.fixture
def full():
    spread = Spread(
        worst_group="apple: green", worst_before=0.25, worst_after=0.75, average_before=0.7, average_after=0.8, gap_before=0.58,
        gap_after=0.1, worst_change=Interval(low=0.3, high=0.6), gap_change=Interval(low=-0.6, high=-0.3),
    )  # fmt: skip
    seed = ArmMeasurement(
        measured_on=SEED, changes=(_change("overall", GroupKind.OVERALL, 80, 60, 8, 1),)
    )
    gone = SliceAfter(
        title="apple: green",
        slice_id="a",
        status=SliceStatus.GONE,
        failures_before=9,
        failures_after=1,
        n_members=12,
    )
    return _result(
        "slice-balanced",
        _arm(
            "slice-balanced",
            20,
            is_baseline=False,
            n_slices=3,
            spread=spread,
            elsewhere=(seed,),
            calibration_after=0.05,
        ),
        _arm("random", 3, n_slices=3),
        aftermath=Aftermath(measured_on=SEED, slices=(gone,), n_tested=1),
        files=("repaired_head.safetensors",),
        notes=("The baseline class-name is missing: no words.",),
    )


def test_repair_lines__everything_in_lines_that_fit(full):
    lines = repair_lines(_record(full)).splitlines()
    assert max(map(len, lines)) <= 100
    assert (
        lines[0] == "Repair: slice-balanced, measured on test samples (1,200 samples); * baseline:"
    )
    assert (
        lines[1]
        == "  a class with a long name: a kind of sample that takes many words 0 (40 samples)"
    )
    assert lines[2] == "    before                  25 %  10 of 40  interval 14 to 40 %"
    assert lines[3] == "    slice-balanced          75 %  30 of 40  +50 (+31 to +64), p < 0.0001"
    assert lines[4] == "    random choice *         32 %  13 of 40  +7.5 (−3.1 to +17), p = 0.25"
    assert sum(line.startswith("    before") for line in lines) == 4
    for start in (
        "  overall (1,200 samples)",
        "  The lowest accuracy of a group rose from 25 % to 75 %",
        "  On seed (validation, discovery half): 8 of 20",
        "  Got worse, by more than chance: “pear” (390 to 380 of 400 right, p = 0.002).",
        "  Lower, which may be chance: “apple: the rest” (280 to 279 of 300 right, p = 1).",
        "  Gone: “apple: green” (9 failures before, 1 after, of 12 members).",
        "  Expected calibration error: 0.050 after.",
        "  The baseline class-name is missing: no words.",
        "  Files: repaired_head.safetensors",
    ):
        assert any(line.startswith(start) for line in lines), start


def test_repair_lines__a_slice_made_worse_is_the_first_line(full):
    arms = tuple(
        arm.model_copy(
            update={
                "changes": tuple(
                    one.model_copy(update={"right_after": 3, "gained": 0, "lost": 7})
                    if one.kind is GroupKind.SLICE
                    else one
                    for one in arm.changes
                )
            }
        )
        for arm in full.arms
    )
    text = repair_lines(_record(full.model_copy(update={"arms": arms})))
    assert text.startswith("Do not use this repair: the slice it is for has become worse")
    assert text.count("Do not use") == 1
    assert "Accuracy on" not in text
    assert "Do not use" not in repair_lines(_record(full))


def test_repair_lines__several_strategies(full):
    reference = _result(
        "group-dro",
        _arm("group-dro", 30, is_baseline=True, n_slices=3),
        notes=("It reads group labels.",),
    )
    waiting = _result(
        "pool-budgeted",
        labelling=LabellingRequest(
            file="labels.csv", image_list="labels.txt", n_samples=60, n_labelled=10
        ),
    )
    beaten = _result(
        "up-weight",
        _arm("up-weight", 1, is_baseline=False, n_slices=3),
        _arm("random", 4, n_slices=3),
    )
    lines = repair_lines(_record(full, reference, waiting, beaten)).splitlines()
    assert max(map(len, lines)) <= 100
    assert sum(line.startswith("    before") for line in lines) == 4
    start = lines.index(
        "Strategies on test samples (1,200 samples), change in points with 95 % intervals:"
    )
    assert lines[start + 1].split() == ["slices", "rest", "of", "class", "overall", "lowest", "gap"]
    assert lines[start + 2].startswith(
        "> slice-balanced          +50! (+31..+64)  −0.3 (−1.8..+1.1)"
    )
    assert lines[start + 2].endswith("25 → 75 %  58 → 10")
    assert lines[start + 3].startswith("  up-weight              +2.5 (−5.7..+10)")
    assert lines[start + 4].startswith("  pool-budgeted: Waiting for 50 labels: labels.csv")
    assert (
        "  up-weight is no better on slices than its baseline “random choice” (+10 against +2)"
        in lines
    )
    assert "  group-dro got worse, by more than chance: pear" in lines
    assert "Repair: group-dro:" in lines
    assert "  It reads group labels." in lines


def test_repair_lines__waiting_for_labels():
    request = LabellingRequest(file="labels.csv", image_list="labels.txt", n_samples=60)
    said = repair_lines(_record(_result("pool-budgeted", labelling=request, files=("labels.csv",))))
    assert said.splitlines() == [
        "Repair: pool-budgeted. Waiting for 60 labels: labels.csv (images alone: labels.txt).",
        "  Files: labels.csv",
    ]


def test_repair_lines__says_why_there_is_none():
    assert repair_lines(_record()).startswith("No repair. No slice was confirmed")
    note = ClassNote(class_name="repair", note="There are no test samples to measure a repair on.")
    assert (
        repair_lines(_record(notes=(note,)))
        == "No repair. There are no test samples to measure a repair on."
    )


def test_repair_lines__a_group_without_samples():
    arm = _arm("slice-balanced", 5, is_baseline=False)
    empty = _change("apple: green", GroupKind.SLICE, 0, 0, 0, 0)
    lines = repair_lines(
        _record(_result("slice-balanced", arm.model_copy(update={"changes": (empty,)})))
    ).splitlines()
    assert lines[1:3] == ["  apple: green (0 samples)", "    no such samples were measured"]


def test_comparison_lines__one_prediction_is_no_comparison(full):
    assert comparison_lines((full,)) == ""


def test_whole_run__findings_and_repairs(full):
    said = whole_run(_record(full))
    assert "0 of 0 tested slices confirmed" in said
    assert "Repair: slice-balanced" in said


def test_block__says_how_many_groups_and_takes_their_interval():
    told = _change("green", GroupKind.SLICE, 40, 10, 20, 0).model_copy(
        update={"n_groups": 8, "interval_of_groups": Interval(low=0.125, high=0.75)}
    )
    arm = _arm("reweight", 20).model_copy(update={"changes": (told,)})
    text = repair_lines(_record(_result("reweight", arm)))
    assert "green (40 samples in 8 groups)" in text
    assert "+50 (+12 to +75)" in text or "+50 (+13 to +75)" in text


def _advised(*advice):
    return RunRecord(run_id="r", command="", started="", seed=0, advice=advice)


def test_what_to_do__where_no_repair_was_measured_to_help():
    labels = Advice(
        kind=AdviceKind.LABEL,
        sentence="heron: you have 3 such training images. Label about 10 more: next/to_label.csv (first 40 chosen), expected "
        "+40 to +75 points on these images",
    )
    accept = Advice(kind=AdviceKind.ACCEPT, sentence="heron: or accept the limit")
    predicted = Advice(kind=AdviceKind.RETRAIN, sentence="retraining may help")
    lines = what_to_do(_advised(predicted, labels, accept))
    assert " ".join(line.strip() for line in lines) == f"Do: {labels.sentence}"
    assert max(map(len, lines)) <= 100
    assert what_to_do(_advised(accept)) == ["Do: heron: or accept the limit"]


def test_what_to_do__a_repair_that_helped_and_a_run_without_advice_say_nothing():
    labels = Advice(kind=AdviceKind.LABEL, sentence="label")
    helped = Advice(kind=AdviceKind.RETRAIN, sentence="helps", is_measured=True)
    assert what_to_do(_advised(labels, helped)) == []
    assert what_to_do(_advised()) == []
