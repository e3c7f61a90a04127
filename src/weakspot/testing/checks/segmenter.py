"""Checks of segmenters."""

import numpy as np

from weakspot.core.roles import ObjectMask, Segmenter
from weakspot.testing.checks import material
from weakspot.testing.checks.expectation import (
    Check,
    Factory,
    expect,
    expect_no_global_randomness,
    expect_refusal,
)
from weakspot.testing.checks.parts import ANY_PART, TOLERANCE, can_be_sent, implements

CLASS_NAME = "disc"


def _masks(part: Segmenter) -> list[ObjectMask]:
    images = material.images()
    return part.segment(images, class_names=[CLASS_NAME] * len(images))


def masks_fit_their_images(factory: Factory) -> None:
    """One mask an image, of its size, from 0 to 1; a refused one says why, one that is used covers something."""
    found = _masks(factory())
    expect(len(found) == material.N_IMAGES, "Not one mask an image.")
    for mask, image in zip(found, material.images(), strict=True):
        expect(
            mask.coverage.shape == (image.height, image.width),
            f"The mask of an image of {image.size} has the shape {mask.coverage.shape}.",
        )
        expect(
            np.isfinite(mask.coverage).all()
            and mask.coverage.min() >= 0
            and mask.coverage.max() <= 1,
            "A coverage is not from 0 to 1.",
        )
        expect(0 <= mask.quality <= 1, "A quality is not from 0 to 1.")
        expect(isinstance(mask.refused, str), "`refused` is no text.")
        expect(mask.refused or mask.coverage.max() > 0, "A mask that is used covers nothing.")


def masks_do_not_depend_on_the_batch(factory: Factory) -> None:
    part: Segmenter = factory()
    together = _masks(part)
    single = [part.segment([image], class_names=[CLASS_NAME])[0] for image in material.images()]
    expect(
        all(
            np.allclose(one.coverage, other.coverage, atol=TOLERANCE)
            and abs(one.quality - other.quality) <= TOLERANCE
            for one, other in zip(together, single, strict=True)
        ),
        "An image gets another mask when it comes alone.",
    )


def every_image_needs_a_class(factory: Factory) -> None:
    part: Segmenter = factory()
    with expect_refusal("Four images came with one class"):
        part.segment(material.images(), class_names=[CLASS_NAME])


def no_images_no_masks(factory: Factory) -> None:
    part: Segmenter = factory()
    expect(part.segment([], class_names=[]) == [], "Masks came out of nothing.")


def images_stay_as_they_are(factory: Factory) -> None:
    part: Segmenter = factory()
    images = material.images()
    before = [image.tobytes() for image in images]
    part.segment(images, class_names=[CLASS_NAME] * len(images))
    expect([image.tobytes() for image in images] == before, "An image was changed.")


def id_is_stable(factory: Factory) -> None:
    part: Segmenter = factory()
    before = part.segmenter_id
    _masks(part)
    expect(
        before and before == part.segmenter_id == factory().segmenter_id,
        "segmenter_id is empty or changes.",
    )


def masks_use_no_global_randomness(factory: Factory) -> None:
    """The image and its class decide."""
    part: Segmenter = factory()
    _masks(part)
    expect_no_global_randomness(lambda: [mask.coverage.tobytes() for mask in _masks(part)])


def _first_mask(part: Segmenter) -> object:
    return part.segment(material.images()[:1], class_names=[CLASS_NAME])[0].coverage


CHECKS: dict[str, Check] = {
    "implements_role": implements(Segmenter),
    "can_be_sent": can_be_sent("segmenter_id", _first_mask),
    **ANY_PART,
    **{
        check.__name__: check
        for check in (
            id_is_stable,
            masks_fit_their_images,
            masks_do_not_depend_on_the_batch,
            every_image_needs_a_class,
            no_images_no_masks,
            images_stay_as_they_are,
            masks_use_no_global_randomness,
        )
    },
}
