import pytest

from weakspot.search.records import StoppedBecause
from weakspot.search.series import JudgedPicture, PictureSeries
from weakspot.search.trials import caption_trials


def series(name: str, failures: int, n_pictures: int) -> PictureSeries:
    pictures = [
        JudgedPicture(
            key=f"{name}{place}",
            label="bee" if place < failures else "fly",
            is_failure=place < failures,
            is_any_failure=place < failures,
        )
        for place in range(n_pictures)
    ]
    return PictureSeries(
        caption=name,
        prompt=name,
        step="user",
        n_asked=n_pictures,
        pictures=pictures,
        failures=failures,
        stopped=StoppedBecause.BETTER,
    )


def test_caption_trials__are_corrected_together():
    baseline, strong, middling = series("baseline", 10, 100), series("strong", 15, 16), series("middling", 9, 16)
    alone = caption_trials(baseline, [middling], alpha=0.05, most=40)[1]
    _, helped, beside = caption_trials(baseline, [strong, middling], alpha=0.05, most=40)
    assert helped.is_proven
    assert beside.log10_e_value == alone.log10_e_value
    assert beside.q_value == pytest.approx(alone.q_value / 2)


@pytest.mark.parametrize("failures", range(17))
def test_caption_trials__a_caption_is_proven_exactly_if_its_difference_is_above_zero(failures):
    trial = caption_trials(series("baseline", 10, 100), [series("caption", failures, 16)], alpha=0.05, most=40)[1]
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
    trial = caption_trials(series("baseline", 0, 100), [series("caption", 8, 16)], alpha=0.05, most=40)[1]
    assert trial.ratio
    assert trial.ratio.value is None
    assert trial.ratio.low > 1
    assert trial.ratio.high is None
