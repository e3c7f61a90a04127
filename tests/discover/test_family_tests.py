import numpy as np
import pytest

from weakspot.core.group_tests import DealtScores
from weakspot.core.statistics import fisher_p
from weakspot.discover import family_tests
from weakspot.discover.family_tests import family_test


def _world(draws, n_samples=120, n_failed=24):
    failed = np.zeros(n_samples, dtype=bool)
    failed[draws.choice(n_samples, n_failed, replace=False)] = True
    return failed


def test_family_test__one_membership_is_fishers_test():
    failed = np.arange(40) < 10
    inside = np.arange(40) % 4 == 0
    found = family_test(failed, None, [inside], [1.0])
    expected = fisher_p(int(failed[inside].sum()), 10, int(failed[~inside].sum()), 30)
    assert found[0][0] == found[1][0] == pytest.approx(expected)


def test_family_test__copies_cost_nothing_and_others_do():
    draws = np.random.default_rng(0)
    failed = np.arange(120) < 24
    inside = (np.arange(120) < 11) | (np.arange(120) >= 104)
    alone = family_test(failed, None, [inside], [1.0])[0][0]
    copies = family_test(failed, None, [inside] * 20, np.ones(20))[1][0]
    others = [draws.random(120) < 0.2 for _ in range(19)]
    among = family_test(failed, None, [inside, *others], np.ones(20))[1][0]
    assert copies == pytest.approx(alone, rel=0.5)
    assert 4 * alone < among < 20 * alone


def test_family_test__a_larger_weight_costs_less():
    draws = np.random.default_rng(1)
    failed = np.arange(120) < 24
    insides = [np.arange(120) < 12, *[draws.random(120) < 0.2 for _ in range(19)]]
    plain = family_test(failed, None, insides, np.ones(20))[1][0]
    heavy = family_test(failed, None, insides, np.array([30.0, *np.ones(19)]))[1][0]
    assert heavy < plain


def test_family_test__tiny_chances_are_not_bounded_by_the_number_of_draws():
    failed = np.arange(400) < 100
    found = family_test(failed, None, [failed, np.arange(400) % 2 == 0], [1.0, 1.0])
    assert found[1][0] < 1e-20


def test_family_test__chance_is_often_more_striking__no_sum_of_chances_stands_in_for_draws():
    draws = np.random.default_rng(4)
    failed = np.arange(120) < 30
    insides = [np.arange(120) < 10, *[draws.random(120) < 0.3 for _ in range(30)]]
    found = family_test(failed, None, insides, np.ones(31))
    least = 1 / (1 + family_tests.MAX_DRAWS)
    assert 31 * found[0][0] < 0.1 * least
    assert found[1][0] >= 1.9 * least


@pytest.mark.parametrize("has_groups", [False, True])
def test_family_test__nothing_to_find__the_best_is_as_rare_as_it_says(has_groups):
    draws = np.random.default_rng(2)
    objects = np.repeat(np.arange(60), 2) if has_groups else np.arange(120)
    insides = [(draws.random(120) < 0.2)[objects] for _ in range(15)]
    groups = objects if has_groups else None
    smallest = []
    for _ in range(150):
        failed = _world(draws, n_failed=20)[objects]
        smallest.append(family_test(failed, groups, insides, np.ones(15))[1].min())
    for level in (0.1, 0.3):
        assert np.mean(np.array(smallest) <= level) <= level + 2.5 * np.sqrt(level / 150)
    assert np.mean(np.array(smallest) <= 0.3) >= 0.12


@pytest.mark.parametrize("n_inside", [12, 2])
def test_family_test__what_is_plainly_chance__draws_no_further(monkeypatch, n_inside):
    draws = np.random.default_rng(3)
    failed = np.arange(120) < 24
    insides = [
        (np.arange(120) < n_inside) | (np.arange(120) >= 110),
        *[draws.random(120) < 0.2 for _ in range(9)],
    ]
    made = []
    original = DealtScores.sums

    def counted(self, n_draws, random):
        for sums in original(self, n_draws, random):
            made.append(len(sums))
            yield sums

    monkeypatch.setattr(DealtScores, "sums", counted)
    found = family_tests._family_test(failed, None, insides, np.ones(10))
    n_made, made[:] = sum(made), []
    monkeypatch.setattr(family_tests, "HOPELESS", 1.0)
    whole = family_tests._family_test(failed, None, insides, np.ones(10))
    assert sum(made) == family_tests.MAX_DRAWS
    if n_inside == 2:
        assert n_made == 2 * 512
        np.testing.assert_allclose(found[1], whole[1], atol=0.05)
    else:
        assert found[1].min() < 0.1
        assert n_made == family_tests.MAX_DRAWS
        np.testing.assert_array_equal(found[1], whole[1])
