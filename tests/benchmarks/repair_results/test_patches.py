import numpy as np
import pytest
from repair_results.patches import PatchLearner

SMALL = PatchLearner(n_filters=12, side=4, n_patches=2_000, n_rounds=5)


def _stripes(n_images, *, seed):
    """Return noisy images of which the first half have upright, the second half flat stripes."""
    random = np.random.default_rng(seed)
    wave = 90 * np.sin(np.arange(16) * 2.1)
    upright = np.broadcast_to(wave[None, :], (16, 16))
    images = np.where((np.arange(n_images) < n_images // 2)[:, None, None], upright, upright.T)[
        ..., None
    ]
    noisy = 128 + np.roll(images, 1, axis=1) + random.normal(0, 25, (n_images, 16, 16, 3))
    return np.clip(noisy, 0, 255).astype(np.uint8)


@pytest.fixture(scope="module")
def learnt():
    return SMALL.learnt(_stripes(80, seed=0), seed=1)


def test_of__four_quadrants_of_every_filter(learnt):
    features = learnt.of(_stripes(10, seed=2))
    assert features.shape == (10, 48)
    assert features.dtype == np.float32
    assert np.isfinite(features).all()
    assert features.min() >= 0


def test_of__textures_are_told_apart(learnt):
    known, new = learnt.of(_stripes(80, seed=0)), learnt.of(_stripes(40, seed=5))
    centres = np.stack([known[:40].mean(axis=0), known[40:].mean(axis=0)])
    nearest = np.square(new[:, None] - centres).sum(axis=2).argmin(axis=1)
    assert np.mean(nearest == np.repeat([0, 1], 20)) > 0.9


def test_of__a_change_in_one_corner_changes_one_quadrant(learnt):
    images = _stripes(1, seed=3)
    changed = images.copy()
    changed[:, :3, :3] = 255 - changed[:, :3, :3]
    same = (
        np.isclose(learnt.of(images)[0], learnt.of(changed)[0], rtol=1e-4)
        .reshape(4, 12)
        .all(axis=1)
    )
    assert same.tolist() == [False, True, True, True]


def test_of__no_images_no_features(learnt):
    assert learnt.of(np.zeros((0, 16, 16, 3), dtype=np.uint8)).shape == (0, 48)


def test_learnt__the_seed_decides():
    images = _stripes(20, seed=0)
    first, again, other = (SMALL.learnt(images, seed=seed).filters for seed in (1, 1, 2))
    assert np.array_equal(first, again)
    assert not np.allclose(first, other)
