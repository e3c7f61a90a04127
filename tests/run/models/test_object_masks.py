import numpy as np
import pytest
from PIL import Image

from weakspot.core.roles import ObjectMask
from weakspot.data.engine.local import LocalEngine
from weakspot.run.model_map import (
    MAX_KEPT_SIDE,
    OUTSIDE,
    UNREADABLE,
    ImageBench,
    ObjectMasks,
    build_segmenter,
    mask_in_box,
    read_mask,
    write_mask,
)
from weakspot.run.settings import Settings

ENGINE = LocalEngine(n_workers=2, queue_depth=4)
ROWS = np.arange(6)


class LeftPart:
    """Takes the left of an image for the object, as much of it as the image is red; counts what it is asked."""

    def __init__(self, *, bad=(), error=None):
        self.bad, self.error = set(bad), error
        self.asked = []

    @property
    def segmenter_id(self):
        return "left-part-1"

    @property
    def image_side(self):
        return None

    def segment(self, images, *, class_names):
        found = []
        for image, class_name in zip(images, class_names, strict=True):
            red = image.getpixel((0, 0))[0]
            if red in self.bad:
                raise ValueError("broken")
            if self.error is not None:
                raise self.error
            self.asked.append((red, class_name))
            coverage = np.zeros((image.height, image.width), dtype=np.float32)
            coverage[:, : image.width * red // 255] = 0.6
            found.append(ObjectMask(coverage=coverage, quality=red / 255, refused=""))
        return found


@pytest.fixture
def store(tmp_path, store_of):
    folder = tmp_path / "images" / "thing"
    folder.mkdir(parents=True)
    for number in range(6):
        Image.new("RGB", (20, 10), (40 * number + 51, 0, 0)).save(folder / f"{number}.png")
    return store_of(folder.parent)


def _masks(store, part):
    return ObjectMasks(
        segmenter=part, bench=ImageBench(dataset=store.dataset(), store=store, engine=ENGINE)
    )


def test_of__every_image_once_and_kept(store):
    first, second = LeftPart(), LeftPart()
    found = _masks(store, first).of(ROWS, "thing")
    again = _masks(store, second).of(ROWS[::-1], "thing")
    assert sorted(first.asked) == [(40 * row + 51, "thing") for row in ROWS]
    assert second.asked == []
    for one, other, row in zip(found, again[::-1], ROWS, strict=True):
        assert one.quality == other.quality == pytest.approx((40 * row + 51) / 255, abs=1e-3)
        np.testing.assert_array_equal(one.coverage, other.coverage)
        assert one.coverage.shape == (10, 20)
        assert one.coverage[0, 0] == pytest.approx(0.6)
        assert (one.coverage[0] > 0).sum() == 20 * (40 * row + 51) // 255


def test_of__broken_image_costs_only_its_own_mask_and_is_tried_again(store):
    found = _masks(store, LeftPart(bad=[131])).of(ROWS, "thing")
    assert [mask.refused for mask in found] == ["", "", UNREADABLE, "", "", ""]
    later = LeftPart()
    assert not any(mask.refused for mask in _masks(store, later).of(ROWS, "thing"))
    assert later.asked == [(131, "thing")]


def test_write_mask__large_one_is_kept_smaller():
    coverage = np.zeros((800, 400), dtype=np.float32)
    coverage[:400] = 1.0
    found = read_mask(write_mask(ObjectMask(coverage=coverage, quality=0.5, refused="no")))
    assert found.coverage.shape == (MAX_KEPT_SIDE, MAX_KEPT_SIDE // 2)
    assert found.coverage.mean() == pytest.approx(0.5)
    assert (found.quality, found.refused) == (0.5, "no")


def test_build_segmenter__embedded_by_default(tmp_path):
    segmenter = build_segmenter(Settings(), tmp_path)
    assert segmenter is not None
    assert segmenter.segmenter_id.startswith("embedded:dinov2-vits14@")


def test_mask_in_box__is_looked_for_in_the_box_and_put_back():
    image = Image.new("RGB", (100, 60), (255, 0, 0))
    found = mask_in_box(LeftPart(), image, (40, 20, 80, 40), class_name="thing")
    assert found.coverage.shape == (60, 100)
    rows, columns = np.nonzero(found.coverage > 0.5)
    assert (columns.min(), columns.max() + 1) == (35, 85)
    assert (rows.min(), rows.max() + 1) == (18, 42)
    outside = mask_in_box(LeftPart(), image, (140, 20, 180, 40), class_name="thing")
    assert outside.refused == OUTSIDE
