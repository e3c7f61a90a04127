import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from weakspot.core.arrays import unit_rows
from weakspot.core.errors import InputError
from weakspot.discover.error_score import error_score_null, error_scores, phrase_scores, score_at


def _by_hand(similarities, failed):
    """Every threshold that can matter, one by one: (best score, highest threshold that reaches it)."""
    values = np.unique(similarities.astype(np.float64))
    cuts = [*((values[:-1] + values[1:]) / 2), np.inf]
    scores = [
        np.mean(similarities[failed] >= cut) - np.mean(similarities[~failed] >= cut) for cut in cuts
    ]
    best = max(scores)
    return best, max(
        cut for cut, score in zip(cuts, scores, strict=True) if score > best - 1e-12
    ) if best > 1e-12 else np.inf


def test_error_scores__written_out():
    similarities = np.array(
        [[0.9, 0.8, 0.3, 0.2], [0.1, 0.2, 0.3, 0.4], [0.5, 0.5, 0.5, 0.5], [0.4, 0.1, 0.3, 0.2]],
        dtype=np.float32,
    )
    failed = np.array([True, True, False, False])
    found = error_scores(similarities, failed)
    # The second phrase is nearest to samples that did not fail; the fourth takes one of two failures and nothing else.
    assert found.score.tolist() == [1.0, 0.0, 0.0, 0.5]
    assert found.threshold == pytest.approx([0.55, np.inf, np.inf, 0.35])


def test_error_scores__large_and_tiny_numbers_keep_all_digits():
    just_above = np.nextafter(np.float32(3e30), np.float32(np.inf))
    tiny = np.float32(1e-45)
    similarities = np.array(
        [[just_above, 3e30, 3e30], [tiny, 0.0, -tiny], [-2.0, -2.0000002, -5e20]], dtype=np.float32
    )
    found = error_scores(similarities, np.array([True, False, False]))
    assert found.score.tolist() == [1.0, 1.0, 1.0]
    assert (similarities >= found.threshold[:, None]).tolist() == [[True, False, False]] * 3


@pytest.mark.parametrize("failed", [[True, True], [False, False]])
def test_error_scores__nothing_to_tell_apart(failed):
    found = error_scores(np.array([[0.1, 0.2]], dtype=np.float32), np.array(failed))
    assert (found.score.tolist(), found.threshold.tolist()) == ([0.0], [np.inf])


def test_error_scores__no_phrases_and_no_samples():
    assert error_scores(
        np.zeros((0, 3), dtype=np.float32), np.array([True, False, True])
    ).score.shape == (0,)
    assert error_scores(
        np.zeros((2, 0), dtype=np.float32), np.zeros(0, dtype=np.bool_)
    ).score.tolist() == [0.0, 0.0]


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_error_scores__refuses_what_is_not_a_number(bad):
    similarities, failed = np.array([[0.1, bad]], dtype=np.float32), np.array([True, False])
    with pytest.raises(InputError, match="not a finite number"):
        error_scores(similarities, failed)
    with pytest.raises(InputError, match="not a finite number"):
        error_score_null(similarities, failed, n_permutations=1, generator=np.random.default_rng(0))


def test_error_scores__refuses_other_shapes():
    with pytest.raises(InputError, match=r"\[phrases, samples\]"):
        error_scores(np.zeros((2, 3), dtype=np.float32), np.array([True, False]))


VALUES = st.one_of(st.sampled_from([-0.25, -0.0, 0.0, 0.25, 0.5]), st.floats(-3, 3, width=32))


@settings(max_examples=200, deadline=None)
@given(data=st.data(), n_samples=st.integers(2, 12), n_phrases=st.integers(1, 4))
def test_error_scores__equal_every_threshold_tried_by_hand(data, n_samples, n_phrases):
    drawn = data.draw(
        st.lists(VALUES, min_size=n_samples * n_phrases, max_size=n_samples * n_phrases)
    )
    similarities = np.array(drawn, dtype=np.float32).reshape(n_phrases, n_samples)
    failed = np.array(data.draw(st.lists(st.booleans(), min_size=n_samples, max_size=n_samples)))
    failed[0], failed[-1] = True, False
    found = error_scores(similarities, failed)
    for row, score, threshold in zip(similarities, found.score, found.threshold, strict=True):
        best, highest = _by_hand(row, failed)
        assert score == pytest.approx(best, abs=1e-12)
        assert threshold == highest
        assert score_at(row, failed, threshold) == pytest.approx(best, abs=1e-12)


def test_error_scores__many_blocks_equal_one_row_each():
    draws = np.random.default_rng(0)
    similarities = draws.normal(scale=0.1, size=(40, 30_000)).astype(np.float32)
    failed = draws.random(30_000) < 0.3
    found = error_scores(similarities, failed)
    single = [error_scores(row[None], failed) for row in similarities]
    assert found.score.tolist() == [one.score[0] for one in single]
    assert found.threshold.tolist() == [one.threshold[0] for one in single]


def test_phrase_scores__equal_those_of_the_product(monkeypatch):
    monkeypatch.setattr("weakspot.discover.error_score.PRODUCT_VALUES", 1000)
    draws = np.random.default_rng(1)
    phrases, embeddings = (
        unit_rows(draws.normal(size=(23, 16))),
        unit_rows(draws.normal(size=(200, 16))),
    )
    failed = draws.random(200) < 0.4
    whole = error_scores(phrases @ embeddings.T, failed)
    found = phrase_scores(phrases, embeddings, failed)
    assert found.score == pytest.approx(whole.score, abs=1e-9)
    assert found.threshold == pytest.approx(whole.threshold, abs=1e-6)


def test_score_at__can_be_negative():
    similarities, failed = np.array([0.9, 0.8, 0.1]), np.array([False, False, True])
    assert score_at(similarities, failed, 0.5) == -1.0
    assert score_at(similarities, np.array([True, True, True]), 0.5) == 0.0


def test_error_score_null__exact_for_a_tiny_set():
    # Of the 6 ways to place 2 failures among 4 samples, 1 scores 1 and 4 score at least 0.5; a family of three has 3 that score 1.
    similarities = np.array(
        [[4.0, 3.0, 2.0, 1.0], [4.0, 2.0, 3.0, 1.0], [1.0, 2.0, 3.0, 4.0]], dtype=np.float32
    )
    failed = np.array([True, True, False, False])
    null = error_score_null(
        similarities, failed, n_permutations=30_000, generator=np.random.default_rng(0)
    )
    assert null[0] == pytest.approx([1 / 6, 4 / 6, 1.0], abs=0.01)
    assert null[1][0] == pytest.approx(3 / 6, abs=0.01)
    assert null[1][2] == 1.0


def test_error_score_null__counts_the_observed_predictions():
    similarities = np.linspace(0, 1, 40, dtype=np.float32)[None]
    null = error_score_null(
        similarities, np.arange(40) >= 30, n_permutations=99, generator=np.random.default_rng(0)
    )
    assert null[0].tolist() == [0.01]


def test_error_score_null__chance_reaches_its_level_and_no_more():
    draws = np.random.default_rng(2)
    found = [
        error_score_null(
            draws.normal(size=(10, 40)).astype(np.float32),
            draws.random(40) < 0.3,
            n_permutations=99,
            generator=draws,
        )
        for _ in range(200)
    ]
    # Ten independent phrases: the best of them is within its level, single ones are not.
    assert np.mean([null[1].min() <= 0.1 for null in found]) == pytest.approx(0.1, abs=0.065)
    assert np.mean([null[0] <= 0.1 for null in found]) == pytest.approx(0.1, abs=0.03)
    assert np.mean([null[0].min() <= 0.1 for null in found]) > 0.4


def test_error_score_null__wide_sums_do_not_overflow():
    n_samples = 100_000
    similarities = np.arange(n_samples, dtype=np.float32)[None]
    failed = np.arange(n_samples) >= n_samples // 2
    null = error_score_null(
        similarities, failed, n_permutations=3, generator=np.random.default_rng(0)
    )
    assert null[0].tolist() == [0.25]


def test_error_score_null__same_generator_same_answer_and_no_phrases():
    similarities = np.random.default_rng(3).normal(size=(5, 20)).astype(np.float32)
    failed = np.arange(20) < 6
    first, second = (
        error_score_null(
            similarities, failed, n_permutations=50, generator=np.random.default_rng(4)
        )
        for _ in range(2)
    )
    assert first[0].tolist() == second[0].tolist()
    empty = error_score_null(
        similarities[:0], failed, n_permutations=5, generator=np.random.default_rng(4)
    )
    assert tuple(values.shape for values in empty) == ((0,), (0,))
    with pytest.raises(InputError, match="at least one shuffle"):
        error_score_null(similarities, failed, n_permutations=0, generator=np.random.default_rng(4))


def _objects(seed, n_objects=40, per_object=5):
    """Objects whose images are alike and fail together, and nothing that failures have to do with."""
    draws = np.random.default_rng(seed)
    objects = np.repeat(np.arange(n_objects), per_object)
    failed = (np.arange(n_objects) < n_objects // 4)[objects]
    similarities = draws.normal(size=(3, n_objects))[:, objects]
    return similarities.astype(np.float32), failed, objects


def test_error_score_null__objects_seen_several_times_are_no_coincidence():
    found = {True: [], False: []}
    for seed in range(60):
        similarities, failed, objects = _objects(seed)
        for is_told in (True, False):
            null = error_score_null(
                similarities,
                failed,
                n_permutations=59,
                generator=np.random.default_rng(seed),
                groups=objects if is_told else None,
            )
            found[is_told].append(null[1].min())
    assert np.mean(np.array(found[False]) <= 0.05) > 0.3
    assert np.mean(np.array(found[True]) <= 0.05) <= 0.12
