import numpy as np
import pytest

from weakspot.core.errors import InputError
from weakspot.core.seeding import generator
from weakspot.core.statistics import exact_interval
from weakspot.search.sequential import contrast_intervals, log_evidence, rate_interval

LOOKS = (*range(1, 12), 14, 18, 24, 32, 48, 64, 96, 128, 200, 300)


def missed_on_the_way(rate: float, *, n_paths: int, level: float) -> float:
    """Return the share of paths on which the interval excludes the truth at any look."""
    outcomes = generator(5, "rate", str(rate)).random((n_paths, LOOKS[-1])) < rate
    counts = np.cumsum(outcomes, axis=1)
    known: dict[tuple[int, int], bool] = {}
    missed = np.zeros(n_paths, dtype=bool)
    for n_pictures in LOOKS:
        for path, failures in enumerate(counts[:, n_pictures - 1].tolist()):
            if (failures, n_pictures) not in known:
                low, high = rate_interval(failures, n_pictures, level=level)
                known[failures, n_pictures] = not low <= rate <= high
            missed[path] |= known[failures, n_pictures]
    return float(missed.mean())


@pytest.mark.parametrize("rate", [0.02, 0.1, 0.5, 0.9])
def test_rate_interval__holds_over_whole_paths(rate):
    n_paths, level = 400, 0.9
    assert missed_on_the_way(rate, n_paths=n_paths, level=level) <= 0.1 + 2 * np.sqrt(0.09 / n_paths)


def test_rate_interval__an_exact_interval_would_not_hold_over_whole_paths():
    outcomes = generator(5, "exact").random((300, LOOKS[-1])) < 0.3
    counts = np.cumsum(outcomes, axis=1)
    missed = np.zeros(300, dtype=bool)
    for n_pictures in LOOKS:
        ends = np.array([exact_interval(int(k), n_pictures, level=0.9) for k in counts[:, n_pictures - 1]])
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
    for n_pictures, n_baseline in ((8, 40), (16, 80), (64, 200), (200, 400)):
        for path in range(n_paths):
            first, second = (int(counts[path, n_pictures - 1]), n_pictures), (int(others[path, n_baseline - 1]), n_baseline)
            for place, ((low, high), truth) in enumerate(
                zip(contrast_intervals(first, second, level=level), (rate - baseline, rate / baseline), strict=True)
            ):
                missed[path, place] |= not low <= truth <= high
    assert missed.mean(axis=0).max() <= 0.1 + 2 * np.sqrt(0.09 / n_paths)


@pytest.mark.parametrize(("counts", "baseline"), [((0, 16), (11, 136)), ((8, 8), (0, 40)), ((0, 0), (4, 40)), ((3, 9), (0, 0))])
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
