import numpy as np
import pytest
from PIL import Image

from weakspot.backends.naflex import NaflexPreprocessing, naflex_of_processor


@pytest.mark.parametrize(
    ("height", "width", "expected"),
    [(100, 100, (4, 4)), (100, 200, (3, 5)), (10, 1000, (1, 16)), (1000, 10, (16, 1)), (3, 3, (4, 4))],
)
def test_grid__as_many_patches_as_fit(height, width, expected):
    assert NaflexPreprocessing(patch_side=16, max_patches=16).grid(height, width) == expected


def test_apply__patches_in_reading_order():
    picture = Image.new("RGB", (4, 4))
    picture.putpixel((2, 0), (255, 255, 255))
    picture.putpixel((3, 3), (0, 0, 255))
    found = NaflexPreprocessing(patch_side=2, max_patches=4).apply(picture)
    assert found.shape == (2, 2, 12)
    assert found[0, 1].tolist() == [1.0] * 3 + [-1.0] * 9
    assert found[1, 1].tolist() == [-1.0] * 11 + [1.0]
    assert (found[:, 0] == -1.0).all()


def test_batch__padding_is_masked():
    pictures = NaflexPreprocessing(patch_side=2, max_patches=4)
    batch = pictures.batch([np.ones((1, 3, 12), dtype=np.float32), np.ones((2, 2, 12), dtype=np.float32)])
    assert batch["pixel_attention_mask"].tolist() == [[1, 1, 1, 0], [1, 1, 1, 1]]
    assert batch["spatial_shapes"].tolist() == [[1, 3], [2, 2]]
    assert batch["pixel_values"].sum() == 7 * 12


def test_naflex_of_processor__told_from_the_others():
    assert naflex_of_processor({"size": 224}) is None
    found = naflex_of_processor({"image_processor": {"max_num_patches": 64, "patch_size": 8, "resample": 3}})
    assert found == NaflexPreprocessing(patch_side=8, max_patches=64, resample="bicubic")
