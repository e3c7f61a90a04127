import pytest

from weakspot.search.counterfactuals import counterfactual_prompt, paired_rate


def test_paired_rate__only_pairs_count():
    found = paired_rate("dark", "a dark disc", [False, False, True, None, False], [True, False, False, True, None], n_looks=1)
    assert (found.share.count, found.share.total) == (1, 3)
    assert (found.pairs, found.gained, found.lost, found.change) == (3, 1, 1, 0.0)
    assert found.p_value == 1.0


def test_paired_rate__a_clear_change_survives_a_few_looks_and_not_many():
    before, after = [False] * 20, [True] * 12 + [False] * 8
    once, often = (paired_rate("dark", "", before, after, n_looks=looks) for looks in (3, 1000))
    assert once.change == pytest.approx(0.6)
    assert once.change_interval.low > 0.25
    assert once.p_after_looks == pytest.approx(3 * once.p_value)
    assert once.p_after_looks < 0.01
    assert often.p_after_looks > 0.05


def test_paired_rate__without_any_picture_nothing_is_said():
    found = paired_rate("dark", "", [None, True], [False, None], n_looks=2)
    assert (found.pairs, found.change, found.p_value) == (0, 0.0, 1.0)
    assert (found.change_interval.low, found.change_interval.high) == (-1.0, 1.0)
    assert found.share.total == 0


@pytest.mark.parametrize(
    ("words", "prompt"),
    [
        ("On the grass.", "a photo of a golden retriever On the grass"),
        ("wet", "a photo of a wet golden retriever"),
        ("there is a ball", "a photo of a golden retriever. there is a ball."),
        ("the background is blurred.", "a photo of a golden retriever. the background is blurred."),
        ("a drawing of a golden retriever", "a drawing of a golden retriever"),
        ("  ", "a photo of a golden retriever"),
    ],
)
def test_counterfactual_prompt__places_properties_sentences_and_whole_prompts(words, prompt):
    assert counterfactual_prompt("Golden_Retriever", words) == prompt
