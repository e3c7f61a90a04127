import numpy as np
import pytest
from PIL import Image

from weakspot.core.errors import ConfigError
from weakspot.models.embedded.encoder import known_image
from weakspot.models.embedded.segmenter import TOO_SMALL, EmbeddedSegmenter


def test_segment__image_too_small_to_see_anything_in():
    (mask,) = EmbeddedSegmenter().segment([Image.new("RGB", (8, 90))], class_names=["apple"])
    assert (mask.refused, mask.quality, mask.coverage.shape) == (TOO_SMALL, 0.0, (90, 8))


def test_least_quality__is_a_share():
    with pytest.raises(ConfigError, match="from 0 to 1"):
        EmbeddedSegmenter(least_quality=60.0)


def test_segmenter_id__tells_another_limit_apart():
    assert EmbeddedSegmenter().segmenter_id != EmbeddedSegmenter(least_quality=0.9).segmenter_id


@pytest.mark.network
def test_segment__object_on_a_photograph():
    ground = Image.fromarray(known_image(320)).crop((0, 220, 320, 320)).resize((320, 320))
    down, across = np.mgrid[0:320, 0:320]
    truth = ((down - 160) / 90) ** 2 + ((across - 150) / 110) ** 2 < 1
    shade = np.clip(1.1 - ((down - 120) ** 2 + (across - 120) ** 2) / 60000, 0.4, 1.1)
    ball = np.clip(np.array([230, 120, 30]) * shade[..., None], 0, 255)
    pixels = np.where(truth[..., None], ball, np.asarray(ground)).astype(np.uint8)
    (mask,) = EmbeddedSegmenter(threads=1).segment(
        [Image.fromarray(pixels)], class_names=["orange"]
    )
    found = mask.coverage > 0.5
    assert not mask.refused
    assert (found & truth).sum() / (found | truth).sum() > 0.9
    (nothing,) = EmbeddedSegmenter(threads=1).segment([ground], class_names=["orange"])
    assert nothing.quality < mask.quality
