import numpy as np
import pytest
from PIL import Image
from written_images import WRITINGS


@pytest.mark.parametrize("what", WRITINGS)
def test_writings__change_a_part_of_the_image_and_keep_its_size(what):
    image = Image.fromarray(np.full((224, 224, 3), 120, dtype=np.uint8))
    changed = []
    for seed in range(8):
        made = WRITINGS[what](image, ["hello"], [], np.random.default_rng(seed))
        assert (made.mode, made.size) == ("RGB", image.size)
        changed.append(float((np.asarray(made) != 120).any(axis=2).mean()))
    assert min(changed) > 0
    assert max(changed) < 0.5


@pytest.mark.parametrize("what", WRITINGS)
def test_writings__same_seed_same_image(what):
    image = Image.fromarray(np.full((224, 224, 3), 120, dtype=np.uint8))
    first, second = (
        np.asarray(WRITINGS[what](image, ["a", "b"], [], np.random.default_rng(3)))
        for _ in range(2)
    )
    assert np.array_equal(first, second)
