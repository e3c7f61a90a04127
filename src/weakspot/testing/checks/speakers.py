"""Checks of parts that turn pictures into words: captioners and question answerers."""

from collections.abc import Callable, Sequence
from typing import Any

from PIL import Image

from weakspot.core.roles import Captioner, QuestionAnswerer
from weakspot.testing.checks import material
from weakspot.testing.checks.expectation import Check, Factory, expect, expect_no_global_randomness
from weakspot.testing.checks.parts import ANY_PART, implements

QUESTION = "What colour is the object?"

Speak = Callable[[Any, Sequence[Image.Image]], list[str]]


def _caption(part: Captioner, pictures: Sequence[Image.Image]) -> list[str]:
    return part.caption(pictures)


def _answer(part: QuestionAnswerer, pictures: Sequence[Image.Image]) -> list[str]:
    return part.answer(pictures, QUESTION)


def _checks(speak: Speak, id_name: str) -> dict[str, Check]:
    def ids_are_stable(factory: Factory) -> None:
        part = factory()
        before = getattr(part, id_name)
        speak(part, material.pictures())
        expect(before and isinstance(before, str), f"{id_name} is empty.")
        expect(before == getattr(part, id_name) == getattr(factory(), id_name), f"{id_name} changes.")

    def one_text_a_picture(factory: Factory) -> None:
        texts = speak(factory(), material.pictures())
        expect(isinstance(texts, list) and len(texts) == material.N_PICTURES, "Not one text a picture.")
        expect(all(isinstance(text, str) and text.strip() for text in texts), "A text is empty.")

    def batches_do_not_matter(factory: Factory) -> None:
        part, pictures = factory(), material.pictures()
        single = [speak(part, [picture])[0] for picture in pictures]
        expect(single == speak(part, pictures), "One picture at a time gives other texts.")

    def same_result_twice(factory: Factory) -> None:
        part, pictures = factory(), material.pictures()
        first = speak(part, pictures)
        expect(first == speak(part, pictures) == speak(factory(), pictures), "The same pictures gave other texts.")

    def input_stays_as_it_is(factory: Factory) -> None:
        pictures = material.pictures()
        before = [picture.tobytes() for picture in pictures]
        speak(factory(), pictures)
        expect([picture.tobytes() for picture in pictures] == before, "A picture was changed.")

    def no_global_randomness(factory: Factory) -> None:
        part, pictures = factory(), material.pictures()
        speak(part, pictures)
        expect_no_global_randomness(lambda: speak(part, pictures))

    def nothing_in_nothing_out(factory: Factory) -> None:
        expect(speak(factory(), []) == [], "Texts came out of nothing.")

    found = (
        ids_are_stable,
        one_text_a_picture,
        batches_do_not_matter,
        same_result_twice,
        input_stays_as_it_is,
        no_global_randomness,
        nothing_in_nothing_out,
    )
    return {check.__name__: check for check in found}


def captions_can_be_about_a_class(factory: Factory) -> None:
    """A class can be named that the caption should be about."""
    part: Captioner = factory()
    texts = part.caption(material.pictures(), about="disc")
    expect(len(texts) == material.N_PICTURES and all(text.strip() for text in texts), "Not one text a picture about a class.")


CAPTIONER_CHECKS: dict[str, Check] = {
    "implements_role": implements(Captioner),
    **ANY_PART,
    **_checks(_caption, "captioner_id"),
    "captions_can_be_about_a_class": captions_can_be_about_a_class,
}
ANSWERER_CHECKS: dict[str, Check] = {
    "implements_role": implements(QuestionAnswerer),
    **ANY_PART,
    **_checks(_answer, "answerer_id"),
}
