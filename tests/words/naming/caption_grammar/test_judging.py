import numpy as np
import pytest

from weakspot.core.arrays import unit_rows
from weakspot.core.failures import FailureCriterion, class_problems
from weakspot.core.rules import ColumnRule
from weakspot.words.caption_judging import (
    N_REMEMBERED,
    Best,
    ClassView,
    SliceView,
    TextSide,
    word_directions,
)
from weakspot.words.captions import Caption


def _caption(*added):
    return Caption(noun="apple", added=tuple(("adjective", words) for words in added))


def _add(best, captions, scores, first=0):
    values = np.array(scores)
    best.add(captions, values, values, values, first)


def test_best__keeps_the_best_of_both_ends():
    captions = [_caption("red"), _caption("green"), _caption("blue")]
    for sign, expected in ((1, ["green", "red"]), (-1, ["blue"])):
        best = Best(sign=sign, most=2)
        _add(best, captions, [0.1, 0.9, -0.5])
        assert [one.caption.contrast for one in best.kept] == expected


def test_best__chunks_do_not_matter():
    draws = np.random.default_rng(0)
    captions = [
        _caption(*(f"word{number}" for number in draws.choice(8, size=size)))
        for size in draws.integers(1, 4, 400)
    ]
    scores = draws.normal(size=400)
    whole, pieces = (Best(sign=1, most=7, longer_gain=0.3) for _ in range(2))
    _add(whole, captions, scores)
    for start in range(0, 400, 13):
        _add(pieces, captions[start : start + 13], scores[start : start + 13], start)
    assert len(whole.kept) == 7
    assert pieces.kept == whole.kept


def test_best__what_only_adds_to_a_better_one_is_dropped():
    best = Best(sign=1, most=5, longer_gain=0.0)
    _add(best, [_caption("green", "small"), _caption("green"), _caption("small")], [0.8, 0.9, 0.1])
    assert [one.caption.contrast for one in best.kept] == ["green", "small"]
    # A better one that comes later drops those kept before.
    _add(best, [_caption("small")], [2.0], 3)
    assert [one.caption.contrast for one in best.kept] == ["small", "green"]


def test_best__longer_ones_must_earn_it():
    best = Best(sign=1, most=2, longer_gain=0.5)
    _add(best, [_caption("dark green"), _caption("red")], [1.4, 1.0])
    assert [one.caption.contrast for one in best.kept] == ["red", "dark green"]


def test_best__the_earlier_of_equals_wins():
    best = Best(sign=1, most=1, longer_gain=0.3)
    _add(best, [_caption("red"), _caption("green")], [0.5, 0.5000001])
    assert best.kept[0].caption.contrast == "red"


def test_best__none_wanted():
    best = Best(sign=1, most=0, longer_gain=0.3)
    _add(best, [_caption("red")], [0.5])
    assert best.kept == []


def test_text_side__asks_for_every_phrase_once():
    asked = []

    def embed(phrases):
        asked.extend(phrases)
        return np.array([[float(len(phrase)), 1.0] for phrase in phrases])

    texts = TextSide(embed, 2)
    first = texts.embeddings(["a", "bbb", "a"])
    assert first == pytest.approx(np.array([[1, 1], [3, 1], [1, 1]]) / np.sqrt([[2], [10], [2]]))
    assert texts.embeddings(["bbb"]) == pytest.approx(first[1:2])
    assert asked == ["a", "bbb"]


def test_text_side__remembers_only_so_many():
    n_asked = 0

    def embed(phrases):
        nonlocal n_asked
        n_asked += len(phrases)
        return np.ones((len(phrases), 2))

    texts = TextSide(embed, 2)
    many = [str(number) for number in range(N_REMEMBERED + 10)]
    texts.embeddings(many)
    texts.embeddings(many)
    assert n_asked == len(many) + 10


def _view(toy, samples, **changes):
    (problem,) = class_problems(samples.dataset, samples.rows, FailureCriterion())
    return ClassView.of(samples, problem, "clip", **{"max_samples": 100, **changes})


def test_of__samples_without_a_embedding_are_left_out(toy):
    samples = toy.samples()
    samples.space("clip").embeddings[3] = np.nan
    view = _view(toy, samples)
    assert 3 not in view.rows
    assert len(view.rows) == 39
    assert np.isfinite(view.covariance).all()


def test_of__large_classes_at_even_steps(toy):
    view = _view(toy, toy.samples(), max_samples=5)
    assert view.rows.tolist() == [0, 10, 20, 29, 39]


def test_accuracies_nearest__and_curve():
    embeddings = unit_rows(
        np.array([[1.0, 0.0], [1.0, 0.2], [1.0, 0.4], [1.0, 0.6], [1.0, 0.8], [1.0, 1.0]])
    )
    view = ClassView.made(
        np.arange(6), embeddings, np.array([True, True, False, False, True, False])
    )
    accuracies = view.accuracies_nearest(np.array([1.0, 0.0]))
    assert accuracies == pytest.approx([0, 0, 1 / 3, 1 / 2, 2 / 5, 1 / 2])
    # Of six samples only the five nearest are asked for; ten would be more than the class has.
    assert view.curve(accuracies) == ((5, 0.4),)
    assert view.accuracy == 0.5
    assert view.n_near(20) == 1


def test_agreement__is_the_correlation_over_samples(toy):
    samples = toy.samples()
    found = toy.green_slice(samples)
    seen = SliceView.of(found.rule, samples, _view(toy, samples), "clip")
    additions = np.random.default_rng(1).normal(size=(3, 12))
    depth = found.rule.scores(samples, samples.rows)
    similarities = samples.embeddings("clip").astype(np.float64) @ additions.T
    expected = [np.corrcoef(depth, similarities[:, place])[0, 1] for place in range(3)]
    assert seen.agreement(additions) == pytest.approx(expected, abs=1e-5)
    assert seen.agreement(np.zeros((1, 12))) == pytest.approx([0.0])


def test_alignment__additions_are_divided_by_the_scale_of_the_rule():
    seen = SliceView(
        view=ClassView.made(
            np.arange(2), np.ones((2, 2), dtype=np.float32), np.array([True, False])
        ),
        depth=np.array([1.0, -1.0]),
        inside=np.array([True, False]),
        slope=np.zeros(2),
        direction=np.array([0.0, 1.0]),
        scale=np.array([1.0, 2.0]),
    )
    # (3, 4) over (1, 2) is (3, 2), of length sqrt(13).
    assert seen.alignment(np.array([[3.0, 4.0]])) == pytest.approx([2 / np.sqrt(13)], abs=1e-6)


def test_of__no_view_of_a_slice_that_all_or_none_belong_to(toy):
    samples = toy.samples()
    view = _view(toy, samples)
    assert (
        SliceView.of(ColumnRule(column="is_green", values=("purple",)), samples, view, "clip")
        is None
    )


def test_of__samples_of_unknown_depth_are_left_out(toy):
    samples = toy.samples()
    rule = toy.green_slice(samples).rule
    holes = samples.space("clip").embeddings.copy()
    view = _view(toy, samples)
    holes[:4] = np.nan
    samples.space("clip").embeddings[:] = holes
    seen = SliceView.of(rule, samples, view, "clip")
    assert seen.view.rows.tolist() == list(range(4, 40))
    assert len(seen.depth) == len(seen.inside) == 36


def test_word_directions__phrase_and_word_count_alike_whatever_their_lengths():
    made = word_directions(
        phrases=np.array([[1.0, 0.1, 0.0]]),
        references=np.array([[1.0, 0.0, 0.0]]),
        words=np.array([[0.0, 0.0, 7.0]]),
        centre=np.array([3.0, 0.0, 0.0]),
    )
    np.testing.assert_allclose(made, [[0.0, 1.0, 1.0]], atol=1e-6)


def test_word_directions__what_a_word_shares_with_the_class_is_taken_away():
    made = word_directions(
        phrases=np.array([[0.0, 1.0]]),
        references=np.array([[0.0, 1.0]]),
        words=np.array([[5.0, 0.5]]),
        centre=np.array([0.1, 0.0]),
    )
    np.testing.assert_allclose(made, [[0.0, 1.0]], atol=1e-6)
