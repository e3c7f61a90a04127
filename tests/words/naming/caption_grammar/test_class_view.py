import numpy as np
import pytest

from weakspot.core.arrays import unit_rows
from weakspot.core.failures import FailureCriterion, class_problems
from weakspot.core.rules import ColumnRule
from weakspot.words.caption_judging import ClassView, SliceView


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
