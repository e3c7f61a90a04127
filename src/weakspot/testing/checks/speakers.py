"""Checks of parts that turn images into words: captioners and question answerers."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
from PIL import Image

from weakspot.core.roles import Captioner, CompletesCaptions, QuestionAnswerer, ScoresCaptions
from weakspot.testing.checks import material
from weakspot.testing.checks.expectation import Check, Factory, expect, expect_no_global_randomness
from weakspot.testing.checks.parts import ANY_PART, can_be_sent, implements

QUESTION = "What colour is the object?"
BEGINNING = "a photo of a disc."
CAPTIONS = (
    "a photo of a red disc",
    "a photo of a disc. it is small. it is dark.",
    "it is on grass",
)
MOST_SENTENCES = 7
CLOSE_ENOUGH = 1e-2

Speak = Callable[[Any, Sequence[Image.Image]], list[str]]


def _caption(part: Captioner, images: Sequence[Image.Image]) -> list[str]:
    return part.caption(images)


def _answer(part: QuestionAnswerer, images: Sequence[Image.Image]) -> list[str]:
    return part.answer(images, QUESTION)


def ids_are_stable(speak: Speak, factory: Factory) -> None:
    """The id is the same for every new instance and after use."""
    part = factory()
    before = _id_of(part)
    speak(part, material.images())
    expect(before and isinstance(before, str), "The id is empty.")
    expect(
        before == _id_of(part) == _id_of(factory()),
        "The id changes with use or from instance to instance.",
    )


def _id_of(part: Any) -> object:
    return part.captioner_id if hasattr(part, "captioner_id") else part.answerer_id


def one_text_a_image(speak: Speak, factory: Factory) -> None:
    """Every image gets words."""
    texts = speak(factory(), material.images())
    expect(isinstance(texts, list) and len(texts) == material.N_IMAGES, "Not one text an image.")
    expect(all(isinstance(text, str) and text.strip() for text in texts), "A text is empty.")


def batches_do_not_matter(speak: Speak, factory: Factory) -> None:
    """One image at a time gets the same words."""
    part, images = factory(), material.images()
    single = [speak(part, [image])[0] for image in images]
    expect(single == speak(part, images), "One image at a time gives other texts.")


def same_result_twice(speak: Speak, factory: Factory) -> None:
    """A second call, and a second instance, say the same."""
    part, images = factory(), material.images()
    first = speak(part, images)
    expect(
        first == speak(part, images) == speak(factory(), images),
        "The same images gave other texts.",
    )


def input_stays_as_it_is(speak: Speak, factory: Factory) -> None:
    """Images are not changed."""
    images = material.images()
    before = [image.tobytes() for image in images]
    speak(factory(), images)
    expect([image.tobytes() for image in images] == before, "An image was changed.")


def no_global_randomness(speak: Speak, factory: Factory) -> None:
    """Nothing is left to chance."""
    part, images = factory(), material.images()
    speak(part, images)
    expect_no_global_randomness(lambda: speak(part, images))


def nothing_in_nothing_out(speak: Speak, factory: Factory) -> None:
    """No images: no words."""
    expect(speak(factory(), []) == [], "Texts came out of nothing.")


def _checks(speak: Speak) -> dict[str, Check]:
    shared = (
        ids_are_stable,
        one_text_a_image,
        batches_do_not_matter,
        same_result_twice,
        input_stays_as_it_is,
        no_global_randomness,
        nothing_in_nothing_out,
    )
    return {check.__name__: partial(check, speak) for check in shared}


def captions_can_be_about_a_class(factory: Factory) -> None:
    part: Captioner = factory()
    texts = part.caption(material.images(), about="disc")
    expect(
        len(texts) == material.N_IMAGES and all(text.strip() for text in texts),
        "Not one text an image about a class.",
    )


def _complete(part: CompletesCaptions, images: Sequence[Image.Image]) -> list[str]:
    return part.complete(images, beginning=BEGINNING)


def completions_are_short_sentences(factory: Factory) -> None:
    """What follows a beginning is plain sentences on one line, without the beginning; a captioner need not complete."""
    part = factory()
    if not isinstance(part, CompletesCaptions):
        return
    texts = _complete(part, material.images())
    expect(
        isinstance(texts, list) and len(texts) == material.N_IMAGES, "Not one completion an image."
    )
    expect(
        all(isinstance(text, str) for text in texts) and any(text.strip() for text in texts),
        "No completion has words.",
    )
    expect(
        not any("\n" in text or text != text.strip() for text in texts),
        "A completion has line breaks or spaces around it.",
    )
    expect(
        not any(BEGINNING.rstrip(".") in text for text in texts),
        "A completion repeats the beginning.",
    )
    expect(
        all(not text or text.endswith(".") for text in texts),
        "A completion does not end with a full stop.",
    )
    expect(
        all(text.count(". ") < MOST_SENTENCES for text in texts),
        f"A completion has more than {MOST_SENTENCES} sentences.",
    )


def completions_keep_the_contract_of_captions(factory: Factory) -> None:
    """Batches and repeated calls do not matter, images stay as they are, and nothing comes of nothing."""
    if not isinstance(factory(), CompletesCaptions):
        return
    for check in (
        batches_do_not_matter,
        same_result_twice,
        input_stays_as_it_is,
        nothing_in_nothing_out,
    ):
        check(_complete, factory)


def likelihoods_are_log_probabilities(factory: Factory) -> None:
    """One finite number of at most 0 an image and caption, whatever the batch; a captioner need not have them."""
    part = factory()
    if not isinstance(part, ScoresCaptions):
        return
    images = material.images()
    found = part.log_likelihoods(images, CAPTIONS)
    expect(
        np.shape(found) == (len(images), len(CAPTIONS)),
        "The likelihoods are not [images, captions].",
    )
    expect(
        np.isfinite(found).all() and (found <= CLOSE_ENOUGH).all(),
        "A likelihood is not the logarithm of a probability.",
    )
    single = [
        [float(part.log_likelihoods([image], [caption])[0, 0]) for caption in CAPTIONS]
        for image in images[:2]
    ]
    is_same = np.allclose(found[:2], single, rtol=CLOSE_ENOUGH, atol=CLOSE_ENOUGH)
    expect(is_same, "One image and caption at a time gives other likelihoods.")
    again = factory().log_likelihoods(images, CAPTIONS)
    expect(
        np.allclose(found, again, rtol=CLOSE_ENOUGH, atol=CLOSE_ENOUGH),
        "A new instance gives other likelihoods.",
    )


def likelihoods_of_nothing(factory: Factory) -> None:
    """No images or no captions: no numbers."""
    part = factory()
    if not isinstance(part, ScoresCaptions):
        return
    expect(
        np.shape(part.log_likelihoods([], CAPTIONS)) == (0, len(CAPTIONS)),
        "Likelihoods came out of no images.",
    )
    images = material.images()[:2]
    expect(
        np.shape(part.log_likelihoods(images, ())) == (len(images), 0),
        "Likelihoods came out of no captions.",
    )


FURTHER_CAPTIONER_CHECKS = (
    completions_are_short_sentences,
    completions_keep_the_contract_of_captions,
    likelihoods_are_log_probabilities,
    likelihoods_of_nothing,
)


def _first_caption(part: Captioner) -> list[str]:
    return part.caption(material.images()[:1])


def _first_reply(part: QuestionAnswerer) -> list[str]:
    return part.answer(material.images()[:1], QUESTION)


CAPTIONER_CHECKS: dict[str, Check] = {
    "implements_role": implements(Captioner),
    "can_be_sent": can_be_sent("captioner_id", _first_caption),
    **ANY_PART,
    **_checks(_caption),
    "captions_can_be_about_a_class": captions_can_be_about_a_class,
    **{check.__name__: check for check in FURTHER_CAPTIONER_CHECKS},
}
ANSWERER_CHECKS: dict[str, Check] = {
    "implements_role": implements(QuestionAnswerer),
    "can_be_sent": can_be_sent("answerer_id", _first_reply),
    **ANY_PART,
    **_checks(_answer),
}
