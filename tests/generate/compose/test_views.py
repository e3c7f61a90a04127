import numpy as np

from weakspot.generate.compose.edits import another_light, another_view


def _square(side=64):
    alpha = np.zeros((side, side), dtype=np.float32)
    alpha[20:44, 24:40] = 1.0
    pixels = np.full((side, side, 3), 90, dtype=np.uint8)
    pixels[alpha > 0] = (200, 40, 40)
    return pixels, alpha


def test_another_view__alpha_stays_with_the_object():
    pixels, alpha = _square()
    for seed in range(12):
        seen, covered = another_view(pixels, alpha, np.random.default_rng(seed))
        assert seen.shape == pixels.shape
        is_red = seen[..., 0] > 150
        overlap = (is_red & (covered > 0.5)).sum() / (is_red | (covered > 0.5)).sum()
        assert overlap > 0.9
        assert covered.mean() > alpha.mean()


def test_another_view__is_decided_by_the_generator_and_sometimes_mirrored():
    pixels, alpha = _square()
    pixels[:, :8] = 255
    views = [another_view(pixels, alpha, np.random.default_rng(seed))[0] for seed in range(16)]
    again = another_view(pixels, alpha, np.random.default_rng(3))[0]
    assert (again == views[3]).all()
    sides = [int(one[:, 0].mean() > one[:, -1].mean()) for one in views]
    assert 0 < sum(sides) < len(sides)


def test_another_light__changes_the_level_and_nothing_else():
    pixels, _ = _square()
    lit = another_light(pixels, np.random.default_rng(1)).astype(float)
    ratio = lit.mean(axis=2) / pixels.mean(axis=2)
    assert not np.allclose(ratio, 1.0, atol=0.01)
    assert ratio.std() < 0.05
