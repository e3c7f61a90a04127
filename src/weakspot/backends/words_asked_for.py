"""The sentences in which models are asked for captions, answers and JSON, and what is kept of their words."""

import json
from collections.abc import Mapping

from pydantic import JsonValue

from weakspot.lexicon.captions import counted, noun_of

CAPTION = "Describe what this picture shows in one short sentence."
CAPTION_ABOUT = "This picture is meant to show {about}. Describe what it shows in one short sentence."
ANSWER = "{question} Answer with one word or a short phrase."
JSON_ANSWER = "{prompt}\n\nAnswer with JSON only, without any other words. The JSON must fit this schema:\n{schema}"


def caption_instruction(about: str | None, *, wording: str = "") -> str:
    """Return what a chat model is asked for a caption.

    >>> caption_instruction("apple")
    'This picture is meant to show an apple. Describe what it shows in one short sentence.'
    """
    if wording:
        return wording.replace("{about}", _thing(about))
    return CAPTION if about is None else CAPTION_ABOUT.replace("{about}", _thing(about))


def caption_opening(about: str | None, *, wording: str = "") -> str | None:
    """Return the words that a caption goes on from, or None.

    >>> caption_opening("apple")
    'a photo of an apple'
    """
    if wording:
        return wording.replace("{about}", _thing(about))
    return None if about is None else f"a photo of {_thing(about)}"


def answer_instruction(question: str) -> str:
    """Return what a chat model is asked for a short answer."""
    return ANSWER.replace("{question}", question.strip())


def json_instruction(prompt: str, schema: Mapping[str, JsonValue]) -> str:
    """Return a prompt with the schema that the answer must fit."""
    return JSON_ANSWER.replace("{schema}", json.dumps(schema, ensure_ascii=False)).replace("{prompt}", prompt)


def plain_words(text: str) -> str:
    r"""Return a text on one line, without control characters and without quotation marks around all of it.

    >>> plain_words(' "A dog\n on grass." ')
    'A dog on grass.'
    """
    words = " ".join("".join(letter if letter.isprintable() else " " for letter in text).split())
    is_quoted = len(words) > 1 and words[0] == words[-1] == '"' and '"' not in words[1:-1]
    return words[1:-1].strip() if is_quoted else words


def after_opening(text: str, opening: str) -> str | None:
    """Return what follows the opening of a text, or None if the text opens otherwise; case, spaces and punctuation do not count.

    >>> after_opening("what colour is it ? dark red", "What colour is it?")
    'dark red'
    """
    wanted = [letter for letter in opening.lower() if letter.isalnum()]
    place = 0
    for letter in wanted:
        while place < len(text) and not text[place].isalnum():
            place += 1
        if place == len(text) or text[place].lower() != letter:
            return None
        place += 1
    return text[place:].lstrip(" .,;:!?")


def _thing(about: str | None) -> str:
    if about is None:
        return "anything"
    noun = noun_of(about)
    return counted(noun, noun)
