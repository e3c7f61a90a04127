import numpy as np
import pytest

from weakspot.core.seeding import generator
from weakspot.search.sequential import is_futile, is_same


def given_up(rate: float, *, baseline_rate: float, n_paths: int = 400) -> tuple[float, float]:
    """Return how often a caption is given up within 400 pictures, and after how many on average."""
    counts = np.cumsum(generator(4, str(rate)).random((n_paths, 400)) < rate, axis=1)
    stops = []
    for path in counts:
        looks = (n for n in range(8, 401, 8) if is_futile(int(path[n - 1]), n, baseline_rate=baseline_rate, smallest_gain=0.1))
        stops.append(next(looks, None))
    n_drawn = [400 if stop is None else stop for stop in stops]
    return float(np.mean([stop is not None for stop in stops])), float(np.mean(n_drawn))


def test_is_futile__captions_like_the_baseline_are_given_up_soon():
    share, n_drawn = given_up(0.1, baseline_rate=0.1)
    assert share > 0.99
    assert n_drawn < 50


@pytest.mark.parametrize(("rate", "most"), [(0.2, 0.45), (0.3, 0.04), (0.5, 0.005), (0.9, 0.0)])
def test_is_futile__the_larger_the_gain_the_less_is_missed(rate, most):
    assert given_up(rate, baseline_rate=0.1)[0] <= most


def test_is_futile__says_nothing_without_pictures_and_at_the_ends():
    assert not is_futile(0, 0, baseline_rate=0.1, smallest_gain=0.1)
    assert is_futile(0, 200, baseline_rate=0.0, smallest_gain=0.1)
    assert not is_futile(100, 100, baseline_rate=1.0, smallest_gain=0.1)


@pytest.mark.parametrize(("shorter", "is_wanted"), [(0.8, True), (0.6, False), (0.1, False)])
def test_is_same__is_rarely_wrong(shorter, is_wanted):
    random = generator(7, str(shorter))
    answers = []
    for _ in range(150):
        first, second = (np.cumsum(random.random(800) < rate) for rate in (shorter, 0.8))
        said = (is_same((int(first[n - 1]), n), (int(second[n - 1]), n), margin=0.2) for n in range(8, 801, 8))
        answers.append(next(answer for answer in said if answer is not None))
    assert np.mean(np.array(answers) == is_wanted) >= 0.85
