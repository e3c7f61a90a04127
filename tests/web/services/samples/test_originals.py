from io import BytesIO

import numpy as np
import pytest
from PIL import Image
from tests.web.services.conftest import ProjectInMemory

from weakspot.core.assistants import NO_ASSISTANTS
from weakspot.core.dataset import dataset_from_columns
from weakspot.core.samples import SampleSet
from weakspot.web.services.samples import original
from weakspot.web.services.workspace import Workspace


@pytest.fixture
def photographs(tmp_path):
    """Four samples: a small image, a large one that lies on its side, a broken file, and no image."""
    rng = np.random.default_rng(0)
    small = Image.fromarray(rng.integers(0, 255, (20, 30, 3), dtype=np.uint8))
    small.save(tmp_path / "small.png")
    turned = Image.new("RGB", (1200, 600), "red")
    exif = Image.Exif()
    exif[0x0112] = 6
    turned.save(tmp_path / "turned.jpg", exif=exif)
    (tmp_path / "broken.jpg").write_bytes(b"\xff\xd8\xff broken")
    names = ["small.png", "turned.jpg", "broken.jpg"]
    dataset = dataset_from_columns(
        class_names=["a"],
        labels=[0, 0, 0, 0],
        locations=[*(str(tmp_path / name) for name in names), None],
    )
    samples = SampleSet(dataset=dataset, rows=np.arange(4))
    (tmp_path / "project").mkdir()
    return Workspace(ProjectInMemory(tmp_path / "project", samples, NO_ASSISTANTS))


def _opened(found):
    return Image.open(BytesIO(found.data))


def test_original__small_image__every_pixel_as_it_is(photographs, tmp_path):
    found = original(photographs, 0)
    assert found.media_type == "image/png"
    kept = np.asarray(Image.open(tmp_path / "small.png"))
    assert (np.asarray(_opened(found)) == kept).all()


def test_original__camera_held_sideways__is_upright_and_carries_nothing_but_pixels(photographs):
    found = original(photographs, 1)
    image = _opened(found)
    assert (found.media_type, image.size) == ("image/jpeg", (600, 1200))
    assert not image.getexif()


def test_original__side__is_scaled_down_never_up(photographs):
    scaled = original(photographs, 1, side=100)
    assert _opened(scaled).size == (50, 100)
    assert scaled.tag != original(photographs, 1).tag
    assert _opened(original(photographs, 0, side=500)).size == (30, 20)


@pytest.mark.parametrize("row", [2, 3])
def test_original__nothing_to_read__is_none(photographs, row):
    assert original(photographs, row) is None
