import io

import numpy as np
import pytest
from PIL import Image

from weakspot.core.errors import ModelError
from weakspot.testing.scenes import Scene, read_marker, render, scene_from_phrase, write_marker


def _scenes(n_scenes=25):
    random = np.random.default_rng(0)
    return [
        scene_from_phrase("", generator=random, instance=int(random.integers(1 << 24)))
        for _ in range(n_scenes)
    ]


def _through(image, **options):
    buffer = io.BytesIO()
    image.save(buffer, **options)
    return Image.open(buffer)


def test_read_marker__exact_through_files():
    for scene in _scenes():
        image = render(scene)
        assert read_marker(image) == scene
        assert read_marker(_through(image, format="PNG")) == scene
        for quality in (95, 75, 50):
            assert read_marker(_through(image, format="JPEG", quality=quality)) == scene


@pytest.mark.parametrize("side", [40, 100, 224, 301])
def test_read_marker__exact_after_resizing(side):
    for scene in _scenes(8):
        assert read_marker(render(scene).resize((side, side))) == scene
        assert read_marker(render(scene, side=max(side, 64))) == scene


@pytest.mark.parametrize(
    "pixels",
    [
        np.zeros((64, 64, 3)),
        np.full((64, 64, 3), 255),
        np.full((64, 64, 3), 32),
        np.random.default_rng(0).integers(0, 255, (64, 64, 3)),
        np.zeros((5, 5, 3)),
        np.zeros((1, 400, 3)),
    ],
)
def test_read_marker__foreign_images_are_refused(pixels):
    with pytest.raises(ModelError, match=r"not from the planted world.*Choose a real model"):
        read_marker(Image.fromarray(pixels.astype(np.uint8)))


def test_read_marker__unmarked_or_cropped_images_are_refused():
    with pytest.raises(ModelError, match="not from the planted world"):
        read_marker(render(Scene(), marked=False))
    with pytest.raises(ModelError, match="not from the planted world"):
        read_marker(render(Scene()).crop((0, 8, 64, 56)))


def test_read_marker__one_wrong_cell_breaks_the_check_sum():
    pixels = np.array(render(Scene()))
    pixels[:4, :4] = 224 if pixels[0, 0, 0] != 224 else 32
    with pytest.raises(ModelError, match="check sum"):
        read_marker(Image.fromarray(pixels))


def test_write_marker__only_the_edges_change():
    blank = np.full((64, 64, 3), 7, dtype=np.uint8)
    marked = write_marker(blank, Scene(instance=5))
    assert (marked[4:-4] == 7).all()
    assert (blank == 7).all()
    assert set(np.unique(marked[:4])) <= {32, 96, 160, 224}
