from dataclasses import replace

import numpy as np
import pytest

from weakspot.core.failures import FailureCriterion
from weakspot.generate.search.series import (
    ImageSeries,
    JudgedImage,
    Referee,
    SampledImages,
    StoppedBecause,
    caption_trials,
)

CLASSES = ("fly", "bee", "wasp")
TOP_1 = FailureCriterion()


def draws(*said: int, n_asked: int | None = None) -> SampledImages:
    rows = np.full((len(said), 3), 0.2, dtype=np.float32)
    rows[np.arange(len(said)), list(said)] = 0.6
    n_places = n_asked or len(said)
    rejected = {"blank": n_places - len(said)} if n_places > len(said) else {}
    return SampledImages(
        keys=tuple(f"key{place}" for place in range(len(said))),
        probabilities=rows,
        n_asked=n_places,
        rejected=rejected,
    )


def series_of(
    given: SampledImages, *, criterion: FailureCriterion = TOP_1, target: str | None = None
) -> ImageSeries:
    series = ImageSeries(caption="", prompt="a fly", step="baseline")
    referee = Referee(class_name="fly", class_names=CLASSES, criterion=criterion, target=target)
    series.take(given, referee, n_asked=given.n_asked)
    return series


def test_take__counts_failures_and_what_they_were_taken_for():
    series = series_of(draws(0, 1, 1, 2, n_asked=6))
    assert (series.n_asked, series.n_images, series.failures) == (6, 4, 3)
    assert series.wrong_labels == {"bee": 2, "wasp": 1}
    assert series.rejected == {"blank": 2}
    assert [one.key for one in series.failed] == ["key1", "key2", "key3"]
    assert [one.label for one in series.failed] == ["bee", "bee", "wasp"]


def test_take__every_object_counts_once_and_its_other_views_are_only_shown():
    given = replace(draws(0, 1, 1, 2), parents=("a", "b", "b", "c"))
    series = series_of(given)
    assert (series.n_images, series.failures, len(series.further)) == (3, 2, 1)
    assert [one.key for one in series.failed] == ["key1", "key3", "key2"]
    (record,) = caption_trials(series, [], alpha=0.05, most=40)
    assert (record.n_images, record.n_views) == (3, 1)


@pytest.mark.parametrize(
    "criterion", [FailureCriterion(), FailureCriterion(kind="target", target="wasp")]
)
def test_take__with_a_target_only_failures_towards_it_count(criterion):
    series = series_of(draws(0, 1, 1, 2), criterion=criterion, target="wasp")
    assert (series.failures, series.target_failures) == (1, 1)
    assert sum(one.is_any_failure for one in series.images) == 3
    assert series.wrong_labels == {"bee": 2, "wasp": 1}


def test_take__a_right_answer_with_low_confidence_is_a_failure_but_no_wrong_label():
    series = series_of(
        draws(0, 1), criterion=FailureCriterion(kind="low-confidence", threshold=0.9)
    )
    assert series.failures == 2
    assert series.wrong_labels == {"bee": 1}


def test_is_final__a_caption_that_was_refused_or_never_begun_stays_so():
    series = ImageSeries(caption="x", prompt="x", step="user", stopped=StoppedBecause.BUDGET)
    assert series.is_final
    series.n_asked = 8
    assert not series.is_final
    series.stopped = StoppedBecause.REFUSED
    assert series.is_final


def series(name: str, failures: int, n_images: int) -> ImageSeries:
    images = [
        JudgedImage(
            key=f"{name}{place}",
            label="bee" if place < failures else "fly",
            is_failure=place < failures,
            is_any_failure=place < failures,
        )
        for place in range(n_images)
    ]
    return ImageSeries(
        caption=name,
        prompt=name,
        step="user",
        n_asked=n_images,
        images=images,
        failures=failures,
        stopped=StoppedBecause.BETTER,
    )


def test_caption_trials__are_corrected_together():
    baseline, strong, middling = (
        series("baseline", 10, 100),
        series("strong", 15, 16),
        series("middling", 9, 16),
    )
    alone = caption_trials(baseline, [middling], alpha=0.05, most=40)[1]
    _, helped, beside = caption_trials(baseline, [strong, middling], alpha=0.05, most=40)
    assert helped.is_proven
    assert beside.log10_e_value == alone.log10_e_value
    assert beside.q_value == pytest.approx(alone.q_value / 2)


@pytest.mark.parametrize("failures", range(17))
def test_caption_trials__a_caption_is_proven_exactly_if_its_difference_is_above_zero(failures):
    trial = caption_trials(
        series("baseline", 10, 100), [series("caption", failures, 16)], alpha=0.05, most=40
    )[1]
    if trial.is_proven:
        assert trial.difference
        assert trial.ratio
        assert trial.difference.low > 0
        assert trial.ratio.low > 1
        assert trial.difference.level == pytest.approx(1 - 2 * 0.05 / 40)
    else:
        assert trial.difference
        assert trial.difference.level == 0.95


def test_caption_trials__a_baseline_that_never_failed_has_no_ratio_but_a_least_one():
    trial = caption_trials(
        series("baseline", 0, 100), [series("caption", 8, 16)], alpha=0.05, most=40
    )[1]
    assert trial.ratio
    assert trial.ratio.value is None
    assert trial.ratio.low > 1
    assert trial.ratio.high is None
