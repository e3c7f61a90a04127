"""Checks of parts that say something of images or make something new: captioners, answerers, text and image generators."""

import json
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
from PIL import Image
from pydantic import JsonValue

from weakspot.core.roles import (
    Captioner,
    CompletesCaptions,
    GeneratedImage,
    ImageGenerator,
    QuestionAnswerer,
    ScoresCaptions,
    TextGenerator,
)
from weakspot.testing import material
from weakspot.testing.part_checks import (
    ANY_PART,
    Check,
    ConformanceError,
    Factory,
    can_be_sent,
    expect,
    expect_no_global_randomness,
    expect_refusal,
    implements,
    role_checks,
)

QUESTION = "What colour is the object?"
BEGINNING = "a photo of a disc."
CAPTIONS = (
    "a photo of a red disc",
    "a photo of a disc. it is small. it is dark.",
    "it is on grass",
)
MAX_SENTENCES = 7
CLOSE_ENOUGH = 1e-2

Speak = Callable[[Any, Sequence[Image.Image]], list[str]]


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
        all(text.count(". ") < MAX_SENTENCES for text in texts),
        f"A completion has more than {MAX_SENTENCES} sentences.",
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


CAPTIONER_CHECKS: dict[str, Check] = {
    "implements_role": implements(Captioner),
    "can_be_sent": can_be_sent("captioner_id", lambda part: part.caption(material.images()[:1])),
    **ANY_PART,
    **_checks(lambda part, images: part.caption(images)),
    "captions_can_be_about_a_class": captions_can_be_about_a_class,
    **{check.__name__: check for check in FURTHER_CAPTIONER_CHECKS},
}
ANSWERER_CHECKS: dict[str, Check] = {
    "implements_role": implements(QuestionAnswerer),
    "can_be_sent": can_be_sent(
        "answerer_id", lambda part: part.answer(material.images()[:1], QUESTION)
    ),
    **ANY_PART,
    **_checks(_answer),
}


PROMPT = "Name attributes of images of a disc that a classifier could stumble over."
SCHEMA: dict[str, JsonValue] = {
    "type": "object",
    "properties": {"attributes": {"type": "array", "items": {"type": "string"}, "minItems": 1}},
    "required": ["attributes"],
}
PROMPTS = ("a photo of a red disc", "a photo of two green stars in the dark")
SEEDS = (3, 4)


def text_is_the_same_for_the_same_seed(factory: Factory) -> None:
    """Prompt and seed decide, not the instance or an earlier call."""
    part: TextGenerator = factory()
    part.generate("something else", seed=8)
    again: TextGenerator = factory()
    expect(
        part.generate(PROMPT, seed=2) == again.generate(PROMPT, seed=2),
        "The same prompt and seed gave two texts.",
    )
    expect(
        part.generator_id == again.generator_id and part.generator_id,
        "generator_id is empty or changes.",
    )


def text_is_text(factory: Factory) -> None:
    """A prompt without a schema gets words."""
    part: TextGenerator = factory()
    text = part.generate(PROMPT)
    expect(isinstance(text, str) and text.strip(), "The answer is empty or no string.")


def text_fits_the_schema(factory: Factory) -> None:
    part: TextGenerator = factory()
    try:
        answer = json.loads(part.generate(PROMPT, schema=SCHEMA))
    except ValueError as error:
        raise ConformanceError(f"The answer is not JSON: {error}") from error
    expect(
        isinstance(answer, dict) and isinstance(answer.get("attributes"), list),
        "The answer does not fit the schema.",
    )
    expect(
        answer["attributes"] and all(isinstance(item, str) for item in answer["attributes"]),
        "The list holds no strings.",
    )


def text_uses_no_global_randomness(factory: Factory) -> None:
    """Only prompt and seed decide."""
    part: TextGenerator = factory()
    part.generate(PROMPT)
    expect_no_global_randomness(lambda: part.generate(PROMPT, schema=SCHEMA, seed=1))


def _images(factory: Factory) -> list[GeneratedImage]:
    part: ImageGenerator = factory()
    return part.generate(PROMPTS, seeds=SEEDS)


def images_know_where_they_come_from(factory: Factory) -> None:
    """One RGB image a prompt, with prompt, seed and generator."""
    found = _images(factory)
    expect([item.prompt for item in found] == list(PROMPTS), "Not one image a prompt, in order.")
    expect([item.seed for item in found] == list(SEEDS), "An image does not carry its seed.")
    expect(
        {item.generator_id for item in found} == {factory().generator_id},
        "An image does not carry its generator.",
    )
    expect(
        all(item.image.mode == "RGB" and min(item.image.size) > 0 for item in found),
        "An image is empty or not RGB.",
    )


def images_are_the_same_for_the_same_seed(factory: Factory) -> None:
    """Prompt and seed decide, not the batch or an earlier call."""
    whole = [item.image.tobytes() for item in _images(factory)]
    part: ImageGenerator = factory()
    pairs = zip(PROMPTS, SEEDS, strict=True)
    single = [part.generate([prompt], seeds=[seed])[0].image.tobytes() for prompt, seed in pairs]
    expect(whole == single, "The same prompt and seed gave two images.")


def prompts_need_seeds(factory: Factory) -> None:
    part: ImageGenerator = factory()
    with expect_refusal("Two prompts came with one seed"):
        part.generate(PROMPTS, seeds=[1])


def no_prompts_no_images(factory: Factory) -> None:
    part: ImageGenerator = factory()
    expect(part.generate([], seeds=[]) == [], "Images came out of nothing.")


def images_use_no_global_randomness(factory: Factory) -> None:
    """Only prompt and seed decide."""
    expect_no_global_randomness(lambda: [item.image.tobytes() for item in _images(factory)])


TEXT_GENERATOR_CHECKS = role_checks(
    TextGenerator,
    {
        "can_be_sent": can_be_sent(
            "generator_id", lambda part: part.generate("Say something.", seed=1)
        ),
        **ANY_PART,
    },
    text_is_text,
    text_fits_the_schema,
    text_is_the_same_for_the_same_seed,
    text_uses_no_global_randomness,
)
IMAGE_GENERATOR_CHECKS = role_checks(
    ImageGenerator,
    {
        "can_be_sent": can_be_sent(
            "generator_id",
            lambda part: part.generate(PROMPTS[:1], seeds=SEEDS[:1])[0].image.tobytes(),
        ),
        **ANY_PART,
    },
    images_know_where_they_come_from,
    images_are_the_same_for_the_same_seed,
    prompts_need_seeds,
    no_prompts_no_images,
    images_use_no_global_randomness,
)
