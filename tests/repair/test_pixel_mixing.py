import numpy as np
import pytest
from PIL import Image

from weakspot.project.refine.training import mixed_image

BLACK, WHITE = Image.new("RGB", (40, 30)), Image.new("RGB", (8, 8), "white")


def _made(seed, **options):
    return mixed_image(BLACK, WHITE, np.random.default_rng(seed), **options)


def test_mixed_image__share_is_what_can_be_seen_of_the_first():
    for seed in range(50):
        image, share = _made(seed)
        is_second = np.asarray(image)[:, :, 0] > 0
        assert image.size == (40, 30)
        assert share == pytest.approx(1.0 - is_second.mean())
        rows, columns = np.nonzero(is_second)
        if len(rows):
            box = is_second[rows.min() : rows.max() + 1, columns.min() : columns.max() + 1]
            assert box.all(), "what covers is one rectangle"


def test_mixed_image__second_shows_what_it_has_at_the_same_place():
    halves = Image.new("RGB", (2, 2))
    halves.putpixel((1, 0), (255, 0, 0))
    halves.putpixel((1, 1), (255, 0, 0))
    grey = Image.new("RGB", (40, 40), "grey")
    large = halves.resize((40, 40))
    for seed in range(20):
        pixels = np.asarray(mixed_image(grey, large, np.random.default_rng(seed))[0])
        is_second = (pixels != 128).any(axis=2)
        assert np.array_equal(pixels[is_second], np.asarray(large)[is_second])


def test_mixed_image__shares_are_spread_and_neither_parent_changes():
    before = BLACK.tobytes()
    shares = [_made(seed)[1] for seed in range(200)]
    assert min(shares) < 0.2
    assert max(shares) > 0.9
    assert BLACK.tobytes() == before
    equal = [_made(seed, concentration=200.0)[1] for seed in range(50)]
    assert min(equal) > 0.45
    assert _made(3)[0].tobytes() == _made(3)[0].tobytes()
