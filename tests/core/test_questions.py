"""Names of questions to held-out samples."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from weakspot.core.arrays import generator
from weakspot.core.errors import InputError
from weakspot.core.questions import (
    QuestionKeys,
    largest_accepted_p,
    online_q_values,
    spending_share,
)
from weakspot.core.statistics import CORRECTIONS
from weakspot.testing.examples import confirmation_samples


def test_key__same_members_and_failures_of_the_same_samples__same_question():
    samples = confirmation_samples()
    rows, inside = samples.rows[:9], np.arange(9) < 4
    failed = np.arange(9) % 2 == 0
    key = QuestionKeys(samples.dataset).key("disc", rows, inside, failed)
    assert QuestionKeys(samples.dataset).key("disc", rows.copy(), inside, failed) == key
    back = slice(None, None, -1)
    other = QuestionKeys(samples.dataset).key("disc", rows[back], inside[back], failed[back])
    assert other == key
    groups = np.arange(9) // 2
    keys = QuestionKeys(samples.dataset)
    assert keys.key("disc", rows, inside, failed, groups=groups) == keys.key(
        "disc", rows, inside, failed, groups=9 - groups
    )


def test_key__anything_that_the_answer_follows_from__makes_another_question():
    samples = confirmation_samples()
    keys = QuestionKeys(samples.dataset)
    rows, inside = samples.rows[:9], np.arange(9) < 4
    failed = np.arange(9) % 2 == 0
    asked = [
        keys.key("disc", rows, inside, failed),
        keys.key("star", rows, inside, failed),
        keys.key("disc", samples.rows[1:10], inside, failed),
        keys.key("disc", rows, ~inside, failed),
        keys.key("disc", rows, inside, ~failed),
        keys.key("disc", rows, inside, failed, groups=np.arange(9) // 2),
    ]
    assert len(set(asked)) == 6


ALPHA = 0.05


def _family(p_values, weights=None, part=1.0):
    given_weights = np.ones(len(p_values)) if weights is None else np.asarray(weights, float)
    return np.asarray(p_values, float), given_weights, part


def test_spending_share__all_together_are_one_and_each_is_smaller_than_the_one_before():
    shares = [spending_share(batch) for batch in range(1, 200_001)]
    assert shares[0] == 0.8
    assert all(later < earlier for earlier, later in pairwise(shares))
    assert 0.999 < sum(shares) < 1.0
    # What comes after n batches is at most the integral of the rest.
    assert sum(shares) + 0.2 * 2 / 2.612 * 199_999**-0.5 == pytest.approx(1.0, abs=1e-6)


def test_spending_share__counts_from_one():
    with pytest.raises(InputError, match="counted from 1"):
        spending_share(0)


@pytest.mark.parametrize("correction", CORRECTIONS)
def test_largest_accepted_p__is_where_the_next_question_is_just_accepted(correction):
    batches = [[_family([1e-9, 0.5, 1e-8])], [_family([0.9])]]
    _, n_fruitful = online_q_values(batches, alpha=ALPHA, correction=correction)
    largest_p = largest_accepted_p(3, n_fruitful, ALPHA, correction)
    for factor, is_found in ((0.999, True), (1.001, False)):
        asked = [*batches, [_family([largest_p * factor])]]
        values, _ = online_q_values(asked, alpha=ALPHA, correction=correction)
        assert (values[-1][0][0] <= ALPHA) is np.bool_(is_found)


def test_online_q_values__one_batch__is_the_correction_at_its_share():
    values, n_fruitful = online_q_values([[_family([0.01, 0.2])]], alpha=ALPHA, correction="fdr")
    assert values[0][0] == pytest.approx([0.02 / 0.8, 0.2 / 0.8])
    assert n_fruitful == 1


def test_online_q_values__a_batch_with_findings__raises_what_is_accepted_once_and_with_fdr_only():
    batches = [[_family([1e-6, 1e-6, 1e-6])], [_family([0.02])]]
    by_correction = {
        correction: online_q_values(batches, alpha=ALPHA, correction=correction)[0][1][0][0]
        for correction in CORRECTIONS
    }
    share = spending_share(2)
    assert by_correction["fdr"] == pytest.approx(0.02 / share / 2)
    assert by_correction["fwer"] == by_correction["fdr-dependent"] == pytest.approx(0.02 / share)


def test_online_q_values__families_of_a_batch__share_what_it_may_spend():
    halves = [_family([0.004], part=0.5), _family([0.004], part=0.5)]
    values, _ = online_q_values([halves], alpha=ALPHA, correction="fwer")
    assert [float(one[0]) for one in values[0]] == pytest.approx([0.004 / 0.4] * 2)


@given(
    st.lists(st.lists(st.floats(0, 1), min_size=1, max_size=4), min_size=1, max_size=5),
    st.lists(st.floats(0, 1), min_size=1, max_size=3),
    st.sampled_from(CORRECTIONS),
)
def test_online_q_values__what_is_asked_later__changes_no_answer(batches, later, correction):
    asked = [[_family(p_values)] for p_values in batches]
    before, n_before = online_q_values(asked, alpha=ALPHA, correction=correction)
    after, n_after = online_q_values([*asked, [_family(later)]], alpha=ALPHA, correction=correction)
    for one, other in zip(before, after, strict=False):
        assert np.array_equal(one[0], other[0])
    assert n_after >= n_before


@pytest.mark.parametrize("correction", CORRECTIONS)
@pytest.mark.parametrize("shared", [0.0, 0.8], ids=["independent", "dependent"])
def test_online_q_values__sixty_questions_and_nothing_there__any_finding_at_most_alpha(
    correction, shared
):
    """Batches of changing size with weights; all p-values of a series hang together through one common draw."""
    from scipy.special import ndtr

    draws, n_series = generator(3, "online", correction, str(shared)), 1500
    any_found = 0
    for _ in range(n_series):
        common = draws.standard_normal()
        batches = []
        for size in (12, *draws.integers(1, 4, 40)):
            noise = draws.standard_normal(size)
            p_values = ndtr(np.sqrt(shared) * common + np.sqrt(1 - shared) * noise)
            batches.append([_family(p_values, draws.uniform(0.2, 5.0, size))])
        any_found += online_q_values(batches, alpha=ALPHA, correction=correction)[1] > 0
    assert any_found / n_series <= ALPHA + 2 * np.sqrt(ALPHA * (1 - ALPHA) / n_series)


@pytest.mark.parametrize("correction", CORRECTIONS)
def test_online_q_values__some_true_findings__share_of_false_ones_at_most_alpha(correction):
    draws, n_series = generator(4, "online share", correction), 600
    shares = []
    for _ in range(n_series):
        batches, is_null = [], []
        for _batch in range(20):
            null = draws.random(5) < 0.7
            p_values = np.where(null, draws.random(5), draws.random(5) ** 12)
            batches.append([_family(p_values)])
            is_null.append(null)
        values, _ = online_q_values(batches, alpha=ALPHA, correction=correction)
        n_found = sum(int((one[0] <= ALPHA).sum()) for one in values)
        n_false = sum(
            int(((one[0] <= ALPHA) & null).sum()) for one, null in zip(values, is_null, strict=True)
        )
        shares.append(n_false / max(n_found, 1))
    assert np.mean(shares) <= ALPHA + 2 * np.std(shares) / np.sqrt(n_series)
