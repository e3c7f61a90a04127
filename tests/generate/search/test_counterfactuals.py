import numpy as np
import pytest

from weakspot.generate.counterfactuals import counterfactual_prompt, paired_rate


def test_paired_rate__only_pairs_count():
    found = paired_rate(
        "dark",
        "a dark disc",
        [False, False, True, None, False],
        [True, False, False, True, None],
    )
    assert (found.share.count, found.share.total) == (1, 3)
    assert (found.pairs, found.gained, found.lost, found.change) == (3, 1, 1, 0.0)
    assert found.p_value == 1.0


def test_paired_rate__a_clear_change_survives_a_few_looks_and_not_many():
    before, after = [False] * 20, [True] * 12 + [False] * 8
    once, often = (paired_rate("dark", "", before, after, price=price) for price in (3, 1000))
    assert once.change == pytest.approx(0.6)
    assert once.change_interval.low > 0.1
    assert once.p_after_looks == pytest.approx(3 * once.p_value)
    assert once.p_after_looks < 0.05
    assert often.p_after_looks > 0.05


def test_paired_rate__without_any_image_nothing_is_said():
    found = paired_rate("dark", "", [None, True], [False, None], price=2)
    assert (found.pairs, found.change, found.p_value) == (0, 0.0, 1.0)
    assert (found.change_interval.low, found.change_interval.high) == (-1.0, 1.0)
    assert found.share.total == 0


def test_paired_rate__an_object_that_comes_again_counts_once():
    before, after = [False] * 40, [True] * 40
    many = paired_rate("dark", "", before, after)
    few = paired_rate("dark", "", before, after, parents=[place % 3 for place in range(40)])
    assert (many.parents, few.parents, few.pairs) == (40, 3, 40)
    assert many.p_value < 0.001
    assert few.p_value > 0.05
    assert few.change_interval.low < 0 < many.change_interval.low
    assert few.share.interval.low < many.share.interval.low


def test_paired_rate__going_on_until_it_looks_good_is_no_use():
    random, n_false = np.random.default_rng(21), 0
    for _ in range(200):
        objects = random.choice([-1, 0, 1], size=60, p=[0.1, 0.8, 0.1])
        parents = random.integers(0, 60, size=400)
        before, after = (objects[parents] == -1).tolist(), (objects[parents] == 1).tolist()
        rates = (
            paired_rate("", "", before[:n], after[:n], parents=parents[:n].tolist())
            for n in range(40, 401, 40)
        )
        n_false += any(rate.p_value <= 0.05 or rate.change_interval.low > 0 for rate in rates)
    assert n_false <= 10


@pytest.mark.parametrize(
    ("words", "prompt"),
    [
        ("On the grass.", "a photo of a golden retriever On the grass"),
        ("wet", "a photo of a wet golden retriever"),
        ("there is a ball", "a photo of a golden retriever. there is a ball."),
        ("the background is blurred.", "a photo of a golden retriever. the background is blurred."),
        ("a generating of a golden retriever", "a generating of a golden retriever"),
        ("  ", "a photo of a golden retriever"),
    ],
)
def test_counterfactual_prompt__places_properties_sentences_and_whole_prompts(words, prompt):
    assert counterfactual_prompt("Golden_Retriever", words) == prompt
