"""Evaluation images that look unlike training images."""

import numpy as np
import pytest
from tests import build

from weakspot.verify.classes import (
    PENALTY,
    TwoSides,
    ask_shift,
    compare_sides,
    discriminant,
    two_sides,
)


def _samples(*, shift=0.0, n_here=40, n_there=80, groups=None, seed=0):
    """Return a class whose evaluation images lie elsewhere, and one whose do not."""
    rng = np.random.default_rng(seed)
    n_samples = 2 * (n_here + n_there)
    labels = np.repeat([0, 1], n_here + n_there)
    is_here = np.tile(np.arange(n_here + n_there) < n_here, 2)
    embeddings = rng.normal(size=(n_samples, 32)).astype(np.float32)
    embeddings[is_here & (labels == 0), 0] += shift
    samples = build.samples(
        labels,
        class_names=["heron", "gull"],
        splits=np.where(is_here, "validation", "train").tolist(),
        groups=groups,
        embeddings=embeddings,
        encoder_id="test",
        rows=np.arange(n_samples),
    )
    return samples, np.flatnonzero(is_here), np.flatnonzero(~is_here)


def test_ask_shift__finds_the_class_that_looks_different():
    samples, here, there = _samples(shift=3.0)
    heron, gull = ask_shift(samples, "clip", here, there)
    assert (heron.class_name, gull.class_name) == ("heron", "gull")
    assert heron.p_value < 1e-6
    assert heron.rate > 0.8
    assert heron.interval.low > 0.65
    assert (heron.n_samples, heron.n_training) == (40, 80)
    assert gull.p_value > 0.05


def test_compare_sides__null__keeps_its_level():
    p_values = []
    for seed in range(600):
        rng = np.random.default_rng(seed)
        sides = TwoSides(
            rows=np.arange(60), is_here=np.arange(60) < 15, embeddings=rng.normal(size=(60, 48))
        )
        p_values.append(compare_sides(sides)[0].p_value)
    assert np.mean(np.array(p_values) <= 0.05) < 0.07
    assert np.mean(np.array(p_values) <= 0.01) < 0.02


def test_two_sides__groups_on_both_sides_are_left_out_and_others_count_once():
    groups = [f"g{place // 2}" for place in range(240)]
    groups[0] = groups[1] = groups[100]
    samples, here, there = _samples(groups=groups)
    sides = two_sides(samples, "clip", here[here < 120], there[there < 120])
    assert sides is not None
    names = [groups[row] for row in sides.rows]
    assert len(names) == len(set(names))
    assert groups[100] not in names
    assert int(sides.is_here.sum()) == 19


def test_two_sides__ten_images_of_one_object_are_too_few():
    samples, here, there = _samples(groups=["one"] * 40 + [None] * 200)
    assert two_sides(samples, "clip", here[here < 120], there[there < 120]) is None


def test_two_sides__images_without_an_embedding_are_left_out():
    samples, here, there = _samples()
    samples.spaces["clip"].embeddings[here[:35]] = np.nan
    assert two_sides(samples, "clip", here[here < 120], there[there < 120]) is None


@pytest.mark.parametrize("n_there", [20, 300])
def test_compare_sides__power_at_two_standard_deviations(n_there):
    n_found = 0
    for seed in range(20):
        rng = np.random.default_rng(seed)
        is_here = np.arange(30 + n_there) < 30
        embeddings = rng.normal(size=(30 + n_there, 24))
        embeddings[is_here, 3] += 2.0
        sides = TwoSides(rows=np.arange(len(is_here)), is_here=is_here, embeddings=embeddings)
        n_found += compare_sides(sides)[0].p_value <= 0.01
    assert n_found >= 15


@pytest.mark.parametrize("n_images", [40, 400])
def test_discriminant__the_smaller_system_gives_the_direction_of_the_larger(n_images):
    random = np.random.default_rng(n_images)
    embeddings = random.normal(size=(n_images, 64)).astype(np.float32)
    is_here = random.random(n_images) < 0.3
    found = discriminant(embeddings, is_here)
    values = embeddings.astype(np.float64)
    centred = values - (values[is_here].mean(axis=0) + values[~is_here].mean(axis=0)) / 2
    targets = np.where(is_here, 1 / is_here.sum(), -1 / (~is_here).sum()) * n_images / 2
    penalty = PENALTY * np.square(centred).sum() / n_images + 1e-12
    # Ridge regression with the penalty as further rows, which neither form of the product builds.
    rows = np.concatenate([centred, np.sqrt(penalty) * np.eye(64)])
    expected = np.linalg.lstsq(rows, np.concatenate([targets, np.zeros(64)]), rcond=None)[0]
    np.testing.assert_allclose(found, expected, rtol=1e-8)
