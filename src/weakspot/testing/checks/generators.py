"""Checks of parts that make something new: text generators and image generators."""

import json

from pydantic import JsonValue

from weakspot.core.roles import GeneratedImage, ImageGenerator, TextGenerator
from weakspot.testing.checks.expectation import (
    Check,
    ConformanceError,
    Factory,
    expect,
    expect_no_global_randomness,
    expect_refusal,
)
from weakspot.testing.checks.parts import ANY_PART, can_be_sent, implements

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


def _first_text(part: TextGenerator) -> str:
    return part.generate("Say something.", seed=1)


def _first_image(part: ImageGenerator) -> bytes:
    return part.generate(PROMPTS[:1], seeds=SEEDS[:1])[0].image.tobytes()


TEXT_GENERATOR_CHECKS: dict[str, Check] = {
    "implements_role": implements(TextGenerator),
    "can_be_sent": can_be_sent("generator_id", _first_text),
    **ANY_PART,
    **{
        check.__name__: check
        for check in (
            text_is_text,
            text_fits_the_schema,
            text_is_the_same_for_the_same_seed,
            text_uses_no_global_randomness,
        )
    },
}
IMAGE_GENERATOR_CHECKS: dict[str, Check] = {
    "implements_role": implements(ImageGenerator),
    "can_be_sent": can_be_sent("generator_id", _first_image),
    **ANY_PART,
    **{
        check.__name__: check
        for check in (
            images_know_where_they_come_from,
            images_are_the_same_for_the_same_seed,
            prompts_need_seeds,
            no_prompts_no_images,
            images_use_no_global_randomness,
        )
    },
}
