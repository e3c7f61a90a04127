import numpy as np
import pytest

from weakspot.core.errors import ConfigError, ModelError
from weakspot.models.transformers.images import TransformersSegmenter
from weakspot.testing import material
from weakspot.testing.checks import checks_for


def _segmenter(folder, **options):
    return TransformersSegmenter(model=folder, device="cpu", **{"least_quality": 0.0, **options})


@pytest.mark.parametrize("kind", ["mask2former", "sam", "sam2"])
@pytest.mark.parametrize(
    "check", ["masks_fit_their_images", "masks_do_not_depend_on_the_batch", "can_be_sent"]
)
def test_segmenter__keeps_its_contract(saved, kind, check):
    checks_for("segmenters")[check](lambda: _segmenter(saved(kind)))


@pytest.mark.parametrize("kind", ["clipseg", "mask2former"])
def test_segment__class_decides(saved, kind):
    images = material.images()[:1]
    disc, star = (
        _segmenter(saved(kind)).segment(images, class_names=[name])[0].coverage
        for name in ("disc", "star")
    )
    assert np.abs(disc - star).max() > 1e-3


def test_segment__label_by_any_of_its_names_or_as_told(saved):
    images = material.images()[:1]
    folder = saved("mask2former")
    disc, circle = (
        _segmenter(folder).segment(images, class_names=[name])[0].coverage
        for name in ("disc", "Circle")
    )
    told = _segmenter(folder, labels={"ring": "disc, circle"}).segment(images, class_names=["ring"])
    np.testing.assert_array_equal(disc, circle)
    np.testing.assert_array_equal(disc, told[0].coverage)


def test_segment__class_that_the_model_does_not_know(saved):
    with pytest.raises(ModelError, match="no label for the class 'horse'.*options.labels"):
        _segmenter(saved("mask2former")).segment(material.images()[:1], class_names=["horse"])


def test_segment__unsure_mask_is_refused(saved):
    (mask,) = _segmenter(saved("clipseg"), least_quality=1.0).segment(
        material.images()[:1], class_names=["disc"]
    )
    assert mask.refused.startswith("the model gives its mask the quality 0.")


def test_segment__kind_without_masks_says_which_have(saved):
    with pytest.raises(ModelError, match="No segmenter of the kind 'git' is known.*SAM 2"):
        _segmenter(saved("git")).segment(material.images()[:1], class_names=["disc"])


def test_segmenter__quality_that_no_mask_can_have():
    with pytest.raises(ConfigError, match="least_quality must lie in.*4"):
        TransformersSegmenter(model="some/model", least_quality=4)
