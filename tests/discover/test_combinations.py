from itertools import combinations, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from weakspot.core.errors import InputError
from weakspot.discover.combinations import (
    CombinationCounter,
    ShuffledFailures,
    affordable_order,
    bound_on_combinations,
    count_combinations,
    evidence_of,
    scores_of,
)


def _by_hand(codes, failed, max_order, min_support):
    """Count in the plainest way there is."""
    found = []
    for order in range(1, max_order + 1):
        for attributes in combinations(range(codes.shape[1]), order):
            for values in product(
                *(sorted(set(codes[:, attribute].tolist()) - {0}) for attribute in attributes)
            ):
                inside = [
                    all(row[a] == v for a, v in zip(attributes, values, strict=True))
                    for row in codes.tolist()
                ]
                if sum(inside) >= min_support:
                    n_failed = sum(
                        one and bad for one, bad in zip(inside, failed.tolist(), strict=True)
                    )
                    found.append((attributes, values, sum(inside), n_failed))
    return found


def _as_told(found):
    told = []
    for place in range(len(found)):
        used = found.attributes[place] >= 0
        values = tuple(found.codes[place][used].tolist())
        counts = int(found.n_inside[place]), int(found.failed_inside[place])
        told.append((tuple(found.attributes[place][used].tolist()), values, *counts))
    return told


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_count_combinations__equals_counting_by_hand(data):
    n_samples, n_attributes = data.draw(st.integers(0, 40)), data.draw(st.integers(0, 6))
    seed, most = data.draw(st.integers(0, 10_000)), data.draw(st.integers(1, 5))
    draws = np.random.default_rng(seed)
    codes = draws.integers(0, most + 1, (n_samples, n_attributes)).astype(
        data.draw(st.sampled_from([np.uint8, np.uint16, np.int64]))
    )
    failed = draws.random(n_samples) < data.draw(st.floats(0, 1))
    max_order, min_support = data.draw(st.integers(1, 3)), data.draw(st.integers(1, 4))
    found = count_combinations(codes, failed, max_order=max_order, min_support=min_support)
    assert _as_told(found) == _by_hand(codes, failed, max_order, min_support)
    assert (found.n_samples, found.n_failed) == (n_samples, int(failed.sum()))


def test_count_combinations__blocks_and_threads_give_what_single_passes_give(monkeypatch):
    draws = np.random.default_rng(1)
    codes = draws.integers(0, [3, 4, 5, 3, 7, 2, 6, 4, 3], (30_000, 9)).astype(np.uint8)
    failed = draws.random(30_000) < 0.2
    found = count_combinations(codes, failed, min_support=5, n_threads=1)
    monkeypatch.setattr("weakspot.discover.combinations.MIN_WORK_PER_THREAD", 1_000)
    threaded = count_combinations(codes, failed, min_support=5, n_threads=3)
    monkeypatch.setattr("weakspot.discover.combinations.MAX_TABLE", 1)
    plain = count_combinations(codes, failed, min_support=5, n_threads=1)
    monkeypatch.setattr("weakspot.discover.combinations.MAX_CELLS", 300)
    in_pieces = count_combinations(codes, failed, min_support=5, n_threads=2)
    for other in (threaded, plain, in_pieces):
        for name in ("attributes", "codes", "n_inside", "failed_inside"):
            assert np.array_equal(getattr(found, name), getattr(other, name)), name
    triple = (codes[:, 1] == 2) & (codes[:, 4] == 6) & (codes[:, 8] == 1)
    place = _as_told(found).index(
        ((1, 4, 8), (2, 6, 1), int(triple.sum()), int(failed[triple].sum()))
    )
    assert np.array_equal(found.inside(codes, place), triple)


def test_count_combinations__codes_keep_their_numbers_when_rare_values_are_dropped():
    codes = np.array([[9, 700], [9, 700], [4, 700], [9, 3], [0, 700]], dtype=np.uint16)
    found = count_combinations(codes, np.array([True, False, True, True, True]), min_support=2)
    assert _as_told(found) == [((0,), (9,), 3, 2), ((1,), (700,), 4, 3), ((0, 1), (9, 700), 2, 1)]
    assert found.orders.tolist() == [1, 1, 2]


def test_count_combinations__many_values_of_one_attribute():
    codes = np.stack([np.arange(600) % 300 + 1, np.arange(600) % 2 + 1], axis=1)
    found = count_combinations(codes, np.arange(600) < 300, min_support=2)
    assert len(found) == 300 + 2 + 300
    assert found.failed_inside[302:].tolist() == [1] * 300


def test_count_combinations__nothing_to_count():
    for codes in (
        np.zeros((5, 2), np.uint8),
        np.zeros((5, 0), np.uint8),
        np.zeros((0, 3), np.uint8),
    ):
        found = count_combinations(codes, np.zeros(len(codes), bool))
        assert len(found) == 0
        assert found.attributes.shape == (0, 3)
        assert evidence_of(found).shape == (0,)


@pytest.mark.parametrize(
    ("codes", "options", "match"),
    [
        (np.zeros(5, np.uint8), {}, "whole numbers"),
        (np.zeros((5, 2)), {}, "whole numbers"),
        (np.full((5, 2), -1), {}, "between 0 and"),
        (np.full((5, 2), 70_000), {}, "between 0 and"),
        (np.zeros((5, 2), np.uint8), {"max_order": 4}, "order"),
        (np.zeros((5, 2), np.uint8), {"min_support": 0}, "support"),
        (np.zeros((4, 2), np.uint8), {}, "one prediction a sample"),
    ],
)
def test_count_combinations__refuses_what_it_cannot_count(codes, options, match):
    with pytest.raises(InputError, match=match):
        count_combinations(codes, np.zeros(5, bool), **options)


def test_count_combinations__too_many_combinations_are_refused(monkeypatch):
    monkeypatch.setattr("weakspot.discover.combinations.MAX_COMBINATIONS", 5)
    with pytest.raises(InputError, match="more than 5 combinations"):
        count_combinations(np.arange(20).reshape(10, 2).astype(np.uint8), np.zeros(10, bool))


def test_affordable_order__is_lowered_by_many_values_and_many_combinations():
    codes = np.stack([np.arange(4_000) % 400 + 1] * 3 + [np.arange(4_000) % 2 + 1], axis=1).astype(
        np.uint16
    )
    options = {"max_order": 3, "min_support": 10}
    assert affordable_order(codes[:, 1:], **options, most=1_000_000) == 3
    assert affordable_order(codes, **options, most=1_000_000) == 2
    assert affordable_order(codes[:, 2:], **options, most=700) == 1
    with pytest.raises(InputError, match="too many values"):
        count_combinations(codes, np.zeros(4_000, bool), min_support=10)
    assert (
        len(count_combinations(codes, np.zeros(4_000, bool), max_order=2, min_support=10))
        == 3 * 400 + 2 + 3 * 400 + 3 * 400
    )


def test_bound_on_combinations__counts_products_and_support():
    assert bound_on_combinations(np.array([2, 3, 4]), 1_000, order=3, min_support=1) == 9 + 26 + 24
    assert bound_on_combinations(np.array([50, 50, 50]), 100, order=2, min_support=10) == 30 + 30
    assert bound_on_combinations(np.array([], dtype=int), 100, order=3, min_support=1) == 0


def test_evidence_of__is_half_the_likelihood_ratio():
    codes = np.array([[1]] * 10 + [[2]] * 30, dtype=np.uint8)
    failed = np.array([True] * 6 + [False] * 4 + [True] * 3 + [False] * 27)
    evidence = evidence_of(count_combinations(codes, failed))
    expected = (
        6 * np.log(0.6 / 0.225)
        + 4 * np.log(0.4 / 0.775)
        + 3 * np.log(0.1 / 0.225)
        + 27 * np.log(0.9 / 0.775)
    )
    assert evidence[0] == pytest.approx(expected)
    assert evidence[1] == -np.inf
    assert scores_of(count_combinations(codes, failed))[0] == pytest.approx(expected - np.log(2))


@pytest.mark.parametrize("share", [0.2, 0.8])
def test_shuffled_failures__maxima_are_those_of_recounting(share):
    draws = np.random.default_rng(3)
    codes = draws.integers(0, 5, (300, 5)).astype(np.uint8)
    failed = draws.random(300) < share
    counter = CombinationCounter.of(codes, min_support=5, n_threads=2)
    maxima = ShuffledFailures(counter, failed).maxima(6, np.random.default_rng(8))
    expected = []
    n_few = min(int(failed.sum()), int((~failed).sum()))
    for order in np.random.default_rng(8).permuted(
        np.tile(np.arange(300, dtype=np.int32), (6, 1)), axis=1
    ):
        few = np.isin(np.arange(300), order[:n_few])
        expected.append(scores_of(counter.count(few if share < 0.5 else ~few)).max())
    assert maxima.tolist() == expected


def test_shuffled_failures__threads_and_pieces_change_nothing(monkeypatch):
    draws = np.random.default_rng(4)
    codes, failed = draws.integers(0, 4, (500, 6)).astype(np.uint8), draws.random(500) < 0.3
    once = ShuffledFailures(
        CombinationCounter.of(codes, min_support=5, n_threads=1), failed
    ).maxima(8, np.random.default_rng(1))
    monkeypatch.setattr("weakspot.discover.combinations.MIN_WORK_PER_THREAD", 1)
    monkeypatch.setattr("weakspot.discover.combinations.MAX_DEALT", 1_500)
    monkeypatch.setattr("weakspot.discover.combinations.MAX_CELLS", 100)
    again = ShuffledFailures(
        CombinationCounter.of(codes, min_support=5, n_threads=3), failed
    ).maxima(8, np.random.default_rng(1))
    assert once.tolist() == again.tolist()


def test_shuffled_failures__observed_maximum_keeps_its_level():
    below = 0
    for seed in range(200):
        draws = np.random.default_rng(seed)
        codes, failed = draws.integers(1, 4, (120, 4)).astype(np.uint8), draws.random(120) < 0.25
        counter = CombinationCounter.of(codes, min_support=5, n_threads=1)
        found = counter.count(failed)
        observed = scores_of(found).max()
        below += (
            1 + np.sum(ShuffledFailures(counter, failed).maxima(19, draws) >= observed)
        ) / 20 <= 0.1
    # 200 worlds at level 0.1: 20 are expected, 33 is three standard deviations more.
    assert 7 <= below <= 33


def test_shuffled_failures__objects_seen_several_times_are_no_coincidence():
    reached = {True: 0, False: 0}
    for seed in range(60):
        draws = np.random.default_rng(seed)
        objects = np.repeat(np.arange(40), 5)
        codes = draws.integers(1, 4, (40, 4))[objects]
        failed = (np.arange(40) < (10 if seed % 2 else 30))[objects]
        counter = CombinationCounter.of(codes, max_order=2, min_support=10)
        observed = scores_of(counter.count(failed)).max()
        for is_told in (True, False):
            shuffled = ShuffledFailures(counter, failed, objects if is_told else None)
            maxima = shuffled.maxima(39, np.random.default_rng(seed))
            reached[is_told] += 1 + int(np.sum(maxima >= observed)) <= 2
    assert reached[False] > 20
    assert reached[True] <= 8
