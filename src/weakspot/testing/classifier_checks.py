"""Checks of classifiers and segmenters."""

from collections.abc import Sequence

import numpy as np

from weakspot.core.arrays import AnyArray
from weakspot.core.dataset import Task
from weakspot.core.roles import Classifier, ClassifierOutput, ObjectMask, Segmenter
from weakspot.testing import material
from weakspot.testing.part_checks import (
    ANY_PART,
    TOLERANCE,
    Factory,
    can_be_sent,
    expect,
    expect_close,
    expect_no_global_randomness,
    expect_refusal,
    role_checks,
)

PROBABILITY_TOLERANCE = 1e-3


def _prepare(part: Classifier) -> list[AnyArray]:
    if getattr(part, "reads", "images") == "embeddings":
        return list(material.small_world().embeddings(np.arange(material.N_IMAGES)))
    return [part.prepare(image) for image in material.images()]


def _said(factory: Factory) -> ClassifierOutput:
    part: Classifier = factory()
    return part.classify(_prepare(part))


def ids_are_stable(factory: Factory) -> None:
    """The id is the same for every new instance and after use."""
    part: Classifier = factory()
    before = part.classifier_id
    part.classify(_prepare(part))
    again: Classifier = factory()
    expect(before and isinstance(before, str), "classifier_id is empty.")
    expect(
        before == part.classifier_id == again.classifier_id,
        "classifier_id changes with use or from instance to instance.",
    )


def facts_are_given(factory: Factory) -> None:
    """Task, class names and image side are of the right kind."""
    part: Classifier = factory()
    expect(part.task in tuple(Task), f"task is {part.task!r}.")
    names, side = part.class_names, part.image_side
    expect(
        names is None or (len(names) > 0 and len(set(names)) == len(names)),
        "class_names are empty or repeated.",
    )
    expect(names is None or isinstance(names, tuple), "class_names is no tuple.")
    expect(side is None or side > 0, f"image_side is {side!r}.")


def probabilities_are_probabilities(factory: Factory) -> None:
    """Probabilities are float32 [n, c] in [0, 1]; they sum to one in a single-label task."""
    part: Classifier = factory()
    probabilities = part.classify(_prepare(part)).probabilities
    n_classes = len(part.class_names) if part.class_names is not None else probabilities.shape[-1]
    expect(
        probabilities.shape == (material.N_IMAGES, n_classes),
        f"probabilities have the shape {probabilities.shape}.",
    )
    expect(
        probabilities.dtype == np.float32, f"probabilities are {probabilities.dtype}, not float32."
    )
    expect(np.isfinite(probabilities).all(), "A probability is not finite.")
    expect(
        (probabilities >= 0).all() and (probabilities <= 1 + PROBABILITY_TOLERANCE).all(),
        "A probability lies outside [0, 1].",
    )
    if part.task is Task.SINGLE_LABEL:
        expect_close(
            probabilities.sum(axis=1),
            np.ones(len(probabilities)),
            "Probabilities do not sum to one",
            tolerance=PROBABILITY_TOLERANCE,
        )


def images_are_told_apart(factory: Factory) -> None:
    """Different images do not all get exactly the same answer."""
    probabilities = _said(factory).probabilities
    expect(
        np.ptp(probabilities, axis=0).max() > 0,
        "Every image gets the same probabilities: are pixels read at all?",
    )


def features_fit_the_head(factory: Factory) -> None:
    """Features are finite float32 [n, d], and the head makes the probabilities out of them."""
    part: Classifier = factory()
    said = part.classify(_prepare(part))
    if said.features is None:
        expect(part.head is None, "There is a head, but no features to put it on.")
        return
    expect(
        said.features.ndim == len(("n", "d")) and len(said.features) == material.N_IMAGES,
        "features are not [n, d].",
    )
    expect(
        said.features.dtype == np.float32 and np.isfinite(said.features).all(),
        "features are not finite float32.",
    )
    if part.head is not None:
        remade = part.head.probabilities(said.features)
        expect_close(
            remade,
            said.probabilities,
            "The head on the features does not give the probabilities",
            tolerance=PROBABILITY_TOLERANCE,
        )


def batches_do_not_matter(factory: Factory) -> None:
    """One image at a time, or in another order, gives the same answers."""
    part: Classifier = factory()
    prepared = _prepare(part)
    whole = part.classify(prepared).probabilities
    single = np.concatenate([part.classify([item]).probabilities for item in prepared])
    expect_close(
        single,
        whole,
        "One image at a time gives other probabilities",
        tolerance=PROBABILITY_TOLERANCE,
    )
    backwards = part.classify(prepared[::-1]).probabilities[::-1]
    expect_close(
        backwards,
        whole,
        "The order of a batch changes the probabilities",
        tolerance=PROBABILITY_TOLERANCE,
    )


def same_result_twice(factory: Factory) -> None:
    """A second call, and a second instance, answer alike."""
    part: Classifier = factory()
    prepared = _prepare(part)
    first = part.classify(prepared).probabilities
    expect_close(
        part.classify(prepared).probabilities,
        first,
        "A second call answers otherwise",
        tolerance=PROBABILITY_TOLERANCE,
    )
    expect_close(
        _said(factory).probabilities,
        first,
        "A second instance answers otherwise",
        tolerance=PROBABILITY_TOLERANCE,
    )


def input_stays_as_it_is(factory: Factory) -> None:
    """Neither images nor prepared arrays are changed."""
    part: Classifier = factory()
    if getattr(part, "reads", "images") == "images":
        image = material.images()[0]
        before = image.tobytes()
        part.prepare(image)
        expect(image.tobytes() == before, "prepare changed the image.")
    prepared = _prepare(part)
    saved = _bytes(prepared)
    part.classify(prepared)
    expect(_bytes(prepared) == saved, "classify changed the prepared images.")


def _bytes(prepared: Sequence[AnyArray]) -> list[bytes]:
    return [np.asarray(item).tobytes() for item in prepared]


def no_global_randomness(factory: Factory) -> None:
    """Nothing is left to chance."""
    part: Classifier = factory()
    prepared = _prepare(part)
    part.classify(prepared)
    expect_no_global_randomness(lambda: part.classify(prepared).probabilities.round(4).tobytes())


def empty_batches_work(factory: Factory) -> None:
    """No images: no rows."""
    part: Classifier = factory()
    expect(len(part.classify([]).probabilities) == 0, "Probabilities came out of nothing.")


def images_are_read_or_refused(factory: Factory) -> None:
    """A part that reads embeddings says so when it gets an image."""
    part: Classifier = factory()
    if getattr(part, "reads", "images") == "embeddings":
        with expect_refusal("An image was given to a classifier of embeddings"):
            part.prepare(material.images()[0])
        return
    expect(isinstance(part.prepare(material.images()[0]), np.ndarray), "prepare gives no array.")


CLASSIFIER_CHECKS = role_checks(
    Classifier,
    {
        "can_be_sent": can_be_sent(
            "classifier_id", lambda part: part.classify(_prepare(part)[:1]).probabilities
        ),
        **ANY_PART,
    },
    ids_are_stable,
    facts_are_given,
    probabilities_are_probabilities,
    images_are_told_apart,
    features_fit_the_head,
    batches_do_not_matter,
    same_result_twice,
    input_stays_as_it_is,
    no_global_randomness,
    empty_batches_work,
    images_are_read_or_refused,
)


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


SEGMENTER_CHECKS = role_checks(
    Segmenter,
    {
        "can_be_sent": can_be_sent(
            "segmenter_id",
            lambda part: part.segment(material.images()[:1], class_names=[CLASS_NAME])[0].coverage,
        ),
        **ANY_PART,
    },
    id_is_stable,
    masks_fit_their_images,
    masks_do_not_depend_on_the_batch,
    every_image_needs_a_class,
    no_images_no_masks,
    images_stay_as_they_are,
    masks_use_no_global_randomness,
)
