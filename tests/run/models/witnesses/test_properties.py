import numpy as np
import pytest
from PIL import Image, ImageFilter

from weakspot.run.witnesses import PropertiesWitness

WITNESS = PropertiesWitness()


@pytest.fixture(scope="module")
def photograph():
    rng = np.random.default_rng(0)
    cells = rng.integers(40, 230, (24, 24, 3), dtype=np.uint8)
    image = Image.fromarray(cells).resize((240, 240), Image.Resampling.NEAREST)
    noise = rng.normal(0, 12, (240, 240, 1))
    return Image.fromarray(np.clip(np.asarray(image) + noise, 0, 255).astype(np.uint8))


def _score(words, image):
    return WITNESS.judge(words)(WITNESS.looker("").speak([image])[0])


def test_judge__looks_of_the_whole_image(photograph):
    changed = {
        "dark": photograph.point(lambda value: value * 0.25),
        "bright": photograph.point(lambda value: 170 + value * 0.33),
        "blurry": photograph.filter(ImageFilter.GaussianBlur(9)),
        "black and white": photograph.convert("L").convert("RGB"),
    }
    for words, image in changed.items():
        assert _score(words, image) > 0.5 > _score(words, photograph)


def test_judge__odd_looks(photograph):
    soft = photograph.filter(ImageFilter.GaussianBlur(2))
    light = soft.convert("L").point(lambda value: 215 + value // 8).convert("RGB")
    noise = np.random.default_rng(1).normal(0, 60, (240, 240, 3))
    changed = {
        "pixelated": photograph.resize((12, 12)).resize((240, 240), Image.Resampling.NEAREST),
        "noisy": Image.fromarray(np.clip(np.asarray(soft) + noise, 0, 255).astype(np.uint8)),
        "overexposed": soft.point(lambda value: min(255, int(value * 2.2))),
        "sketch": light,
    }
    for words, image in changed.items():
        assert _score(words, image) > 0.5 > _score(words, soft)
    assert _score("sketch", soft.convert("L").convert("RGB")) < 0.5
    assert _score("overexposed", light) < 0.5


@pytest.mark.parametrize("words", ["green", "pale", "small", "with text"])
def test_judge__what_it_cannot_tell(words):
    assert WITNESS.judge(words) is None


def test_phrase__only_what_is_clear(photograph):
    (plain, grey) = WITNESS.looker("").speak([photograph, photograph.convert("L").convert("RGB")])

    assert WITNESS.phrase(plain) == ""
    assert WITNESS.phrase(grey) == "black and white"
    assert WITNESS.tags(grey) == {}
