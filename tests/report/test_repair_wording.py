import pytest

from weakspot.core.evidence import Interval, Spread
from weakspot.core.repairs import (
    Aftermath,
    GroupChange,
    GroupKind,
    LabellingRequest,
    RepairArm,
    SliceAfter,
    SliceStatus,
)
from weakspot.core.slices import DataUse
from weakspot.core.statistics import mcnemar_p
from weakspot.report import repairs as words

USE = DataUse(name="test samples", n_samples=100, digest="t")


def _change(gained, lost, *, before=40, n_samples=100, group="apple: green", kind=GroupKind.SLICE):
    return GroupChange(
        group=group, kind=kind, n_samples=n_samples, right_before=before, right_after=before + gained - lost, gained=gained,
        lost=lost, interval_before=Interval(low=0.3, high=0.5), interval_after=Interval(low=0.4, high=0.6),
        p_value=mcnemar_p(gained, lost),
    )  # fmt: skip


def _arm(*changes, **more):
    return RepairArm(
        arm="slice-balanced", is_baseline=False, note="Done.", n_trained=10, changes=changes, **more
    )


@pytest.mark.parametrize(
    ("gained", "lost", "said"),
    [
        (10, 0, "rose from 40 % to 50 %"),
        (0, 10, "fell from 40 % to 30 %"),
        (5, 1, "went from 40 % to 44 %, which may be chance (p = 0.22)"),
        (1, 5, "went from 40 % to 36 %, which may be chance (p = 0.22)"),
        (0, 0, "stayed at 40 %"),
        (3, 3, "stayed at 40 %, with 3 samples gained and as many lost"),
    ],
)
def test_movement__nothing_is_called_a_rise_that_may_be_chance(gained, lost, said):
    assert words.movement(_change(gained, lost)) == said


def test_rival_words__a_baseline_that_did_as_well_is_said_so():
    repaired = _change(10, 0)
    assert words.rival_words("random", _change(9, 0), repaired, None) == (
        "; the best baseline there, “random choice”, reached 49 % (49 of 100)"
    )
    overall = _change(2, 0, before=80, group="overall", kind=GroupKind.OVERALL)
    assert words.rival_words("random", _change(10, 0), repaired, overall) == (
        "; the baseline “random choice” came as far or farther: 50 % (50 of 100; overall 82 %)"
    )


def test_spread_sentence__rise_and_chance():
    spread = Spread(
        worst_group="pear", worst_before=0.1, worst_after=0.4, average_before=0.6, average_after=0.7, gap_before=0.6,
        gap_after=0.35, worst_change=Interval(low=0.12, high=0.5), gap_change=Interval(low=-0.5, high=-0.02),
    )  # fmt: skip
    assert words.spread_sentence(spread) == (
        "The lowest accuracy of a group rose from 10 % to 40 % (95 % interval of the change +12 to +50 points; now lowest: "
        "“pear”); the average over groups went from 60 % to 70 %, and the gap between overall and lowest from 60 to 35 points "
        "(interval of the change −50 to −2)."
    )
    unsure = spread.model_copy(update={"worst_change": Interval(low=-0.02, high=0.5)})
    assert "a group went from 10 % to 40 %, which may be chance (" in words.spread_sentence(unsure)
    fell = spread.model_copy(
        update={"worst_after": 0.05, "worst_change": Interval(low=-0.1, high=-0.01)}
    )
    assert "a group fell from 10 % to 5 % (" in words.spread_sentence(fell)


def test_accounting_sentence__resolved_and_still_right():
    overall = _change(12, 4, before=40, group="overall", kind=GroupKind.OVERALL)
    assert words.accounting_sentence(USE, overall) == (
        "On test samples: 12 of 60 (20 %, 95 % interval 12–32 %) former failures are now right; "
        "36 of 40 (90 %, 95 % interval 77–96 %) formerly right samples still are."
    )
    perfect = _change(0, 1, before=100, group="overall", kind=GroupKind.OVERALL)
    assert words.accounting_sentence(USE, perfect).startswith(
        "On test samples: nothing had failed; 99 of 100"
    )
    hopeless = _change(1, 0, before=0, group="overall", kind=GroupKind.OVERALL)
    assert words.accounting_sentence(USE, hopeless).endswith("; nothing had been right.")


def test_worse_sentences__chance_is_told_apart():
    arm = _arm(
        _change(0, 10, group="pear", kind=GroupKind.CLASS),
        _change(1, 3, group="melon", kind=GroupKind.CLASS),
        _change(0, 5, before=100, group="formerly right", kind=GroupKind.FORMERLY_RIGHT),
    )
    assert list(words.worse_sentences(arm)) == [
        "Got worse, by more than chance: “pear” (40 to 30 of 100 right, p = 0.002).",
        "Lower, which may be chance: “melon” (40 to 38 of 100 right, p = 0.62).",
    ]
    assert list(words.worse_sentences(_arm(_change(1, 0)))) == ["No group got worse."]


def test_worse_sentences__many_groups():
    classes = [
        _change(0, 10, group=f"class {number}", kind=GroupKind.CLASS) for number in range(30)
    ]
    (sentence,) = words.worse_sentences(_arm(*classes))
    assert sentence.endswith(", and 18 more. Among 30 groups, one in twenty can seem so by chance.")


def test_aftermath_sentences__every_status():
    assert set(words.STATUS_WORDS) == set(SliceStatus)
    slices = [
        SliceAfter(
            title=f"apple: {status}",
            slice_id=status,
            status=status,
            failures_before=9,
            failures_after=4,
            n_members=20,
        )
        for status in SliceStatus
    ]
    said = list(
        words.aftermath_sentences(Aftermath(measured_on=USE, slices=tuple(slices), n_tested=4))
    )
    assert (
        said[0]
        == "Failures were looked for again after the repair, in the same way (on test samples, 4 slices tested)."
    )
    assert said[1:] == [
        "Gone: “apple: gone” (9 failures before, 4 after, of 20 members).",
        "Smaller, but still there: “apple: smaller” (9 failures before, 4 after, of 20 members).",
        "Still there: “apple: stays” (9 failures before, 4 after, of 20 members).",
        "New: “apple: new” (9 failures before, 4 after, of 20 members).",
    ]
    said = list(
        words.aftermath_sentences(
            Aftermath(measured_on=USE, slices=tuple(slices[:1]), note="A note.")
        )
    )
    assert said[-2:] == ["No new slice was confirmed.", "A note."]


def test_calibration_sentence__as_far_as_it_was_measured():
    assert words.calibration_sentence(_arm()) == ""
    assert (
        words.calibration_sentence(_arm(temperature=2.0))
        == "Probabilities were calibrated; logits were divided by 2.00."
    )
    assert (
        words.calibration_sentence(_arm(calibration_after=0.02))
        == "Expected calibration error: 0.020 after."
    )


def test_labelling_sentence__waiting_and_done():
    request = LabellingRequest(file="to_label.csv", image_list="to_label.txt", n_samples=1)
    assert (
        words.labelling_sentence(request)
        == "Waiting for 1 label: to_label.csv (images alone: to_label.txt)."
    )
    done = request.model_copy(update={"n_labelled": 1})
    assert words.labelling_sentence(done) == "Every label that was asked for has come back (1)."
