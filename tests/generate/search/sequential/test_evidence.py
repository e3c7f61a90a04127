import numpy as np
import pytest

from weakspot.core.arrays import generator
from weakspot.core.errors import InputError
from weakspot.core.statistics import exact_interval
from weakspot.generate.search.sequential import (
    contrast_intervals,
    least_difference,
    least_ratio,
    log_evidence,
    rate_interval,
)


def binomial_chances(n: int, rate: float) -> np.ndarray:
    from scipy.stats import binom

    return binom.pmf(np.arange(n + 1), n, rate)


@pytest.mark.parametrize(
    ("rate", "baseline"), [(0.1, 0.1), (0.02, 0.02), (0.5, 0.5), (0.3, 0.4), (0.97, 0.97)]
)
@pytest.mark.parametrize(("n_images", "n_baseline"), [(1, 1), (8, 40), (24, 12)])
def test_log_evidence__pays_at_most_one_on_average_if_there_is_nothing(
    rate, baseline, n_images, n_baseline
):
    """The mean is exact: a sum over all counts."""
    chances = np.outer(binomial_chances(n_images, rate), binomial_chances(n_baseline, baseline))
    paid = [
        [np.exp(log_evidence(k, n_images, b, n_baseline)) for b in range(n_baseline + 1)]
        for k in range(n_images + 1)
    ]
    assert float(np.sum(chances * np.array(paid))) <= 1.0 + 1e-9


def test_log_evidence__rarely_exceeds_its_bound_at_any_time():
    """Stopped at the best moment of a path, with the baseline growing on the way."""
    n_paths, rate, bound = 300, 0.15, np.log(10.0)
    random = generator(3, "paths")
    counts = np.cumsum(random.random((n_paths, 256)) < rate, axis=1)
    others = np.cumsum(random.random((n_paths, 256)) < rate, axis=1)
    looks = [
        (4, 64),
        (8, 64),
        (16, 64),
        (16, 128),
        (32, 128),
        (64, 128),
        (64, 256),
        (128, 256),
        (256, 256),
    ]
    best = [
        max(log_evidence(int(k[n - 1]), n, int(b[m - 1]), m) for n, m in looks)
        for k, b in zip(counts, others, strict=True)
    ]
    assert np.mean(np.array(best) >= bound) <= 0.1 + 2 * np.sqrt(0.09 / n_paths)


def test_log_evidence__grows_with_failures_and_with_what_is_known_of_the_baseline():
    values = [log_evidence(k, 16, 10, 100) for k in range(17)]
    assert values == sorted(values)
    assert log_evidence(12, 16, 40, 400) > log_evidence(12, 16, 4, 40) > log_evidence(12, 16, 0, 0)


def test_log_evidence__a_strong_effect_takes_about_a_dozen_images():
    assert log_evidence(9, 12, 14, 140) > np.log(40 / 0.05) > log_evidence(3, 12, 14, 140)


def test_log_evidence__keeps_its_digits_at_large_counts():
    assert np.isfinite(log_evidence(40_000, 80_000, 1_000, 100_000))
    assert log_evidence(0, 5_000, 2_500, 5_000) < 0


def test_log_evidence__refuses_what_cannot_be():
    with pytest.raises(InputError):
        log_evidence(5, 4, 0, 10)
    with pytest.raises(InputError):
        log_evidence(1, 4, 11, 10)


def test_least_difference__is_below_what_was_seen_and_comes_closer():
    found = [least_difference((n // 2, n), (n // 2, 5 * n), alpha=0.05) for n in (8, 32, 128, 512)]
    assert found == sorted(found)
    assert 0.3 < found[-1] < 0.4


def test_least_ratio__is_below_what_was_seen_and_comes_closer():
    found = [least_ratio((n // 2, n), (n // 2, 5 * n), alpha=0.05) for n in (8, 32, 128, 512)]
    assert found == sorted(found)
    assert 3.5 < found[-1] < 5.0


LOOKS = (*range(1, 12), 14, 18, 24, 32, 48, 64, 96, 128, 200, 300)


def missed_on_the_way(rate: float, *, n_paths: int, level: float) -> float:
    """Return the share of paths on which the interval excludes the truth at any look."""
    predictions = generator(5, "rate", str(rate)).random((n_paths, LOOKS[-1])) < rate
    counts = np.cumsum(predictions, axis=1)
    known: dict[tuple[int, int], bool] = {}
    missed = np.zeros(n_paths, dtype=bool)
    for n_images in LOOKS:
        for path, failures in enumerate(counts[:, n_images - 1].tolist()):
            if (failures, n_images) not in known:
                low, high = rate_interval(failures, n_images, level=level)
                known[failures, n_images] = not low <= rate <= high
            missed[path] |= known[failures, n_images]
    return float(missed.mean())


@pytest.mark.parametrize("rate", [0.02, 0.1, 0.5, 0.9])
def test_rate_interval__holds_over_whole_paths(rate):
    n_paths, level = 400, 0.9
    assert missed_on_the_way(rate, n_paths=n_paths, level=level) <= 0.1 + 2 * np.sqrt(
        0.09 / n_paths
    )


def test_rate_interval__an_exact_interval_would_not_hold_over_whole_paths():
    predictions = generator(5, "exact").random((300, LOOKS[-1])) < 0.3
    counts = np.cumsum(predictions, axis=1)
    missed = np.zeros(300, dtype=bool)
    for n_images in LOOKS:
        ends = np.array(
            [exact_interval(int(k), n_images, level=0.9) for k in counts[:, n_images - 1]]
        )
        missed |= (ends[:, 0] > 0.3) | (ends[:, 1] < 0.3)
    assert missed.mean() > 0.2


def test_rate_interval__narrows_and_keeps_the_ends():
    assert rate_interval(0, 0) == (0.0, 1.0)
    assert rate_interval(0, 20)[0] == 0.0
    assert rate_interval(20, 20)[1] == 1.0
    widths = [high - low for low, high in (rate_interval(n // 5, n) for n in (10, 40, 160, 640))]
    assert widths == sorted(widths, reverse=True)
    assert widths[-1] < 0.12


def test_rate_interval__refuses_what_cannot_be():
    with pytest.raises(InputError):
        rate_interval(3, 2)
    with pytest.raises(InputError):
        rate_interval(1, 2, level=1.0)


@pytest.mark.parametrize(("rate", "baseline"), [(0.1, 0.1), (0.6, 0.1), (0.05, 0.3)])
def test_contrast_intervals__hold_over_whole_paths(rate, baseline):
    n_paths, level = 50, 0.9
    random = generator(6, str(rate), str(baseline))
    counts = np.cumsum(random.random((n_paths, 200)) < rate, axis=1)
    others = np.cumsum(random.random((n_paths, 400)) < baseline, axis=1)
    missed = np.zeros((n_paths, 2), dtype=bool)
    for n_images, n_baseline in ((8, 40), (16, 80), (64, 200), (200, 400)):
        for path in range(n_paths):
            first, second = (
                (int(counts[path, n_images - 1]), n_images),
                (int(others[path, n_baseline - 1]), n_baseline),
            )
            for place, ((low, high), truth) in enumerate(
                zip(
                    contrast_intervals(first, second, level=level),
                    (rate - baseline, rate / baseline),
                    strict=True,
                )
            ):
                missed[path, place] |= not low <= truth <= high
    assert missed.mean(axis=0).max() <= 0.1 + 2 * np.sqrt(0.09 / n_paths)


@pytest.mark.parametrize(
    ("counts", "baseline"),
    [((0, 16), (11, 136)), ((8, 8), (0, 40)), ((0, 0), (4, 40)), ((3, 9), (0, 0))],
)
def test_contrast_intervals__have_ends_in_the_possible_range(counts, baseline):
    (low, high), (least, largest) = contrast_intervals(counts, baseline)
    assert -1.0 <= low < high <= 1.0
    assert 0.0 <= least < largest
    if counts[1] and baseline[1]:
        assert low <= counts[0] / counts[1] - baseline[0] / baseline[1] <= high


def test_contrast_intervals__never_contradict_the_evidence():
    for failures in range(17):
        log_e_value = log_evidence(failures, 16, 10, 100)
        alpha = 0.025
        (low, _), (least, _) = contrast_intervals((failures, 16), (10, 100), level=1 - 2 * alpha)
        assert (low > 0) == (least > 1) == (log_e_value >= -np.log(alpha))
