from dataclasses import replace

import numpy as np
import pytest
from tests import build

from weakspot.core.failures import FailureCriterion, class_problems
from weakspot.core.samples import EmbeddingSpace
from weakspot.discover.spotlight import (
    Field,
    SpotlightDiscoverer,
    brightest,
    losses_of,
    precision_for,
)
from weakspot.testing.checks import checks_for

TOP_1 = FailureCriterion()


def _samples(n_each=40, *, seed=0, probabilities=None):
    """Cats of three kinds and dogs; the cats of the second kind are taken for dogs, and one dog for a cat."""
    draws = np.random.default_rng(seed)
    kinds = np.repeat(np.arange(4), n_each)
    embeddings = (0.2 * draws.standard_normal((4 * n_each, 8)) + np.eye(8)[kinds]).astype(
        np.float32
    )
    labels = (kinds == 3).astype(np.int64)
    predictions = np.where(kinds == 1, 1, labels)
    predictions[-1] = 0
    return build.samples(
        labels,
        class_names=["cat", "dog"],
        predictions=predictions,
        probabilities=probabilities,
        embeddings=embeddings,
        rows=np.arange(len(kinds)),
    ), kinds


@pytest.mark.parametrize("check", checks_for("discoverers"))
def test_spotlight__keeps_the_contract_of_discoverers_for_all_classes_at_once(check):
    checks_for("discoverers")[check](
        lambda: SpotlightDiscoverer(per_class=False, n_starts=1, cut="half")
    )


@pytest.mark.parametrize("options", [{}, {"loss": "failure"}, {"per_class": False}])
def test_discover__finds_the_kind_that_fails(options):
    samples, kinds = _samples()
    discovery = SpotlightDiscoverer(**options).discover(samples, TOP_1, seed=0)
    first = discovery.slices[0]
    assert first.class_name == "cat"
    inside = first.rule.members(samples, samples.rows)[kinds < 3]
    assert np.mean(inside == (kinds[kinds < 3] == 1)) > 0.95
    assert first.strength > 0.9
    assert [note.class_name for note in discovery.notes] == ["dog"]
    assert "1 of 40 samples failed" in discovery.notes[0].note


def test_discover__half_weight_is_a_ball_around_the_kind():
    samples, kinds = _samples()
    found = (
        SpotlightDiscoverer(cut="half", min_spot=30.0).discover(samples, TOP_1, seed=0).slices[0]
    )
    inside = found.rule.members(samples, samples.rows)
    assert inside.sum() >= 5
    assert np.all(kinds[inside] == 1)


def test_discover__losses_count_when_there_are_probabilities():
    _, kinds = _samples()
    truth = np.where(kinds == 2, 0.55, 0.99)
    truth[kinds == 1] = 0.45
    truth[(kinds == 1) & (np.arange(len(kinds)) % 2 == 0)] = 0.01
    probabilities = np.stack([truth, 1 - truth], axis=1).astype(np.float32)
    probabilities[kinds == 3] = probabilities[kinds == 3][:, ::-1]
    soft, _ = _samples(probabilities=probabilities)
    problem = class_problems(soft.dataset, soft.rows, TOP_1)[0]
    assert losses_of(problem, "log")[:1] == pytest.approx([-np.log(0.99)], abs=1e-5)
    assert set(losses_of(problem, "failure").tolist()) == {0.0, 1.0}
    found = SpotlightDiscoverer().discover(soft, TOP_1, seed=0).slices[0]
    assert np.mean(kinds[found.rule.members(soft, soft.rows) & (kinds < 3)] == 1) > 0.9


def test_discover__several_spots_light_up_different_samples():
    samples, kinds = _samples(n_each=60)
    predictions = np.where((kinds == 1) | (kinds == 0), 1, samples.dataset.labels)
    two = replace(samples, dataset=samples.dataset.with_predictions(predictions=predictions))
    found = SpotlightDiscoverer(n_spots=2, cut="half").discover(two, TOP_1, seed=0).slices
    centres = [
        int(np.argmax(item.rule.centre.values)) for item in found if item.class_name == "cat"
    ]
    assert sorted(centres) == [0, 1]


def test_discover__constant_embeddings_get_a_note():
    samples, _ = _samples()
    flat = EmbeddingSpace(encoder_id="toy", embeddings=np.ones((160, 8), dtype=np.float32))
    discovery = SpotlightDiscoverer().discover(
        replace(samples, spaces={"clip": flat}), TOP_1, seed=0
    )
    assert discovery.slices == ()
    assert "alike" in {note.class_name: note.note for note in discovery.notes}["cat"]


def test_discover__a_part_of_many_samples_is_enough():
    samples, kinds = _samples(n_each=200)
    found = SpotlightDiscoverer(max_samples=120).discover(samples, TOP_1, seed=0).slices[0]
    inside = found.rule.members(samples, samples.rows)[kinds < 3]
    assert np.mean(inside == (kinds[kinds < 3] == 1)) > 0.9
    assert found.n_found <= 60


@pytest.mark.parametrize("size", [1.5, 3.0, 20.0])
def test_precision_for__weights_sum_to_the_size(size):
    distances = np.random.default_rng(0).gamma(2.0, 3.0, size=50)
    distances[0] = 0.0
    assert np.exp(-0.5 * precision_for(distances, size) * distances).sum() == pytest.approx(
        size, rel=1e-4
    )


def test_precision_for__equal_points_have_no_size_but_a_finite_answer():
    assert np.isfinite(precision_for(np.zeros(9), 3.0))


def test_field__pulls_are_the_gradient_of_the_mean_loss():
    draws = np.random.default_rng(2)
    field = Field.of(draws.standard_normal((60, 3)).astype(np.float32), draws.random(60))
    centre, small = np.array([0.2, -0.1, 0.3]), 1e-3
    spot = field.at(centre, 12.0)
    gradient = spot.precision * (spot.pulls @ field.embeddings - spot.pulls.sum() * centre) / 12.0
    for axis in range(3):
        step = small * np.eye(3)[axis]
        slope = (
            field.at(centre + step, 12.0).mean_loss - field.at(centre - step, 12.0).mean_loss
        ) / (2 * small)
        assert gradient[axis] == pytest.approx(slope, rel=0.02, abs=1e-4)


def test_held_out_scores__are_distances_to_the_centre_without_the_sample():
    draws = np.random.default_rng(5)
    embeddings = draws.standard_normal((30, 4)).astype(np.float32)
    spot = Field.of(embeddings, draws.random(30)).at(
        embeddings.mean(axis=0).astype(np.float64), 15.0
    )
    pulls = np.full(30, 1 / 30)
    rested = replace(spot, pulls=pulls)
    for place in (0, 7):
        without = np.delete(embeddings, place, axis=0).mean(axis=0)
        assert rested.held_out_scores[place] == pytest.approx(
            -np.square(embeddings[place] - without).sum(), rel=1e-4
        )


def test_brightest__stands_where_losses_are_high():
    draws = np.random.default_rng(0)
    embeddings = draws.standard_normal((300, 3)).astype(np.float32)
    embeddings[:60] = embeddings[:60] * 0.3 + 3.0
    losses = np.where(np.arange(300) < 60, 2.0, 0.1)
    spot = brightest(Field.of(embeddings, losses), 20.0, n_starts=2, draws=draws)
    assert spot.centre == pytest.approx([3.0, 3.0, 3.0], abs=0.5)
    assert spot.weights.sum() == pytest.approx(20.0, rel=1e-3)
    assert spot.mean_loss > 1.9
