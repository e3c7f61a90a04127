import numpy as np
import pytest

from weakspot.core.errors import InputError
from weakspot.core.seeding import generator
from weakspot.search.sequential import least_difference, least_ratio, log_evidence


def binomial_chances(n: int, rate: float) -> np.ndarray:
    from scipy.stats import binom

    return binom.pmf(np.arange(n + 1), n, rate)


@pytest.mark.parametrize(("rate", "baseline"), [(0.1, 0.1), (0.02, 0.02), (0.5, 0.5), (0.3, 0.4), (0.97, 0.97)])
@pytest.mark.parametrize(("n_pictures", "n_baseline"), [(1, 1), (8, 40), (24, 12)])
def test_log_evidence__pays_at_most_one_on_average_if_there_is_nothing(rate, baseline, n_pictures, n_baseline):
    """The mean is exact: a sum over all counts."""
    chances = np.outer(binomial_chances(n_pictures, rate), binomial_chances(n_baseline, baseline))
    paid = [[np.exp(log_evidence(k, n_pictures, b, n_baseline)) for b in range(n_baseline + 1)] for k in range(n_pictures + 1)]
    assert float(np.sum(chances * np.array(paid))) <= 1.0 + 1e-9


def test_log_evidence__rarely_exceeds_its_bound_at_any_time():
    """Stopped at the best moment of a path, with the baseline growing on the way."""
    n_paths, rate, bound = 300, 0.15, np.log(10.0)
    random = generator(3, "paths")
    counts = np.cumsum(random.random((n_paths, 256)) < rate, axis=1)
    others = np.cumsum(random.random((n_paths, 256)) < rate, axis=1)
    looks = [(4, 64), (8, 64), (16, 64), (16, 128), (32, 128), (64, 128), (64, 256), (128, 256), (256, 256)]
    best = [max(log_evidence(int(k[n - 1]), n, int(b[m - 1]), m) for n, m in looks) for k, b in zip(counts, others, strict=True)]
    assert np.mean(np.array(best) >= bound) <= 0.1 + 2 * np.sqrt(0.09 / n_paths)


def test_log_evidence__grows_with_failures_and_with_what_is_known_of_the_baseline():
    values = [log_evidence(k, 16, 10, 100) for k in range(17)]
    assert values == sorted(values)
    assert log_evidence(12, 16, 40, 400) > log_evidence(12, 16, 4, 40) > log_evidence(12, 16, 0, 0)


def test_log_evidence__a_strong_effect_takes_about_a_dozen_pictures():
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
