import numpy as np
import pytest

from weakspot.core.errors import InputError
from weakspot.generate.search.sequential import change_p, first_pairs, sequential_change_interval


def test_first_pairs__a_parent_counts_once_and_only_with_both_images():
    found = first_pairs([None, False, True], [True, True, True], ["a", "a", "a"])
    assert found == [(False, True)]


def test_change_p__is_symmetric_and_agrees_with_the_interval():
    assert change_p(9, 1, 40) == pytest.approx(change_p(1, 9, 40))
    for gained in range(15):
        low, _ = sequential_change_interval(gained, 1, 40)
        assert (low > 0) == (gained > 1 and change_p(gained, 1, 40) < 0.05)


def test_change_interval__covers_a_true_change_at_all_times():
    random, n_missed = np.random.default_rng(22), 0
    for _ in range(200):
        drawn = random.choice([1, -1, 0], size=300, p=[0.3, 0.1, 0.6])
        counts = [
            (int((drawn[:n] == 1).sum()), int((drawn[:n] == -1).sum()), n)
            for n in range(10, 301, 10)
        ]
        bounds = [sequential_change_interval(*one) for one in counts]
        n_missed += any(not low <= 0.2 <= high for low, high in bounds)
    assert n_missed <= 10


def test_change_p__more_changes_than_pairs_are_refused():
    with pytest.raises(InputError):
        change_p(3, 2, 4)
