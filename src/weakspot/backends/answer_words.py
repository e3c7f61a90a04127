"""The sentences in which models are asked for captions, answers and JSON, and what is kept of their words.

Captions in short sentences: how models are asked to go on from a beginning, and what is kept of what they say.
"""

import json
import re
from collections.abc import Mapping

from pydantic import JsonValue

from weakspot.lexicon.captions import counted, noun_of

MOST_SENTENCES = 7
MOST_WORDS = 20
# Models that only go on writing are led: each of these is the start of one sentence.
OPENINGS = ("it is", "there is", "the background is", "the light is")
COMPLETION = (
    'The caption of this image begins with: "{beginning}" Go on with four to seven short, plain sentences on how and where it '
    "is, what is around it, the background and the light, in the manner of: the background is blurred. it is on a yellow flower. "
    "it is small. Write these sentences only."
)
SCORED = "Write a caption of this image in short, plain sentences."

_TAGS = re.compile(r"</?[A-Za-z|!][^<>\n]{0,80}>|\[/?[A-Z]{3,}\]")
_LIST_MARKS = re.compile(r"^\s*(?:[-*+•>#]+|\(?\d{1,2}[.):])\s+")
_MARKUP = re.compile(r"[*_`#|~]+")
_ENDS = re.compile(r"(?<=[.!?])[\"')\]]*\s+|\s*;\s+")
_LAST_ENDS = (".", "!", "?")
_AROUND = " \t\"'“”‘’()[]{}.,;:!?-–—"


def completion_instruction(beginning: str) -> str:
    """Return what a chat model is asked so that it goes on from a beginning."""
    return COMPLETION.replace("{beginning}", " ".join(beginning.split()))


def short_sentences(text: str, *, beginning: str = "", most: int = MOST_SENTENCES) -> str:
    r"""Return what a model said after a beginning as short, plain sentences, each once, with a small first letter and a full stop.

    The beginning itself is left out where the model repeats it, and so are announcements ("Here is the caption:"), sentences that
    are not short, and a last sentence that was cut off.

    Args:
        text: what the model said.
        beginning: what it was to go on from.
        most: how many sentences are kept.

    >>> short_sentences("A photo of a fly. It is **green**.\n- It is on a leaf\n- It is on a leaf.", beginning="a photo of a fly")
    'it is green. it is on a leaf.'
    """
    known = {_letters(beginning), ""}
    kept: list[str] = []
    for sentence in _sentences(text, beginning):
        key = _letters(sentence)
        if key not in known and len(sentence.split()) <= MOST_WORDS:
            known.add(key)
            kept.append(
                f"{sentence[:1].lower() if not sentence[:2].isupper() else sentence[:1]}{sentence[1:]}."
            )
    return " ".join(kept[:most])


def led_sentence(opening: str, text: str) -> str:
    """Return the sentence that a model made of its opening; empty if it added nothing.

    >>> led_sentence("the background is", "the background is green. and a dog")
    'the background is green.'
    """
    rest = after_opening(text, opening)
    said = next(iter(_whole(text if rest is None else rest)), "").strip(_AROUND)
    return short_sentences(f"{opening} {said}.") if said else ""


def _sentences(text: str, beginning: str) -> list[str]:
    plain = _MARKUP.sub("", _TAGS.sub(" ", _printable(text)))
    rest = after_opening(plain, beginning) if _letters(beginning) else None
    lines = (
        _LIST_MARKS.sub("", line).strip() for line in (plain if rest is None else rest).split("\n")
    )
    parts = [part for line in lines if line and not line.endswith(":") for part in _whole(line)]
    if (
        len(parts) > 1
        and not parts[-1].rstrip("\"')] ").endswith(_LAST_ENDS)
        and "\n" not in plain.strip()
    ):
        parts.pop()
    return [" ".join(part.split()).strip(_AROUND) for part in parts]


def _whole(line: str) -> list[str]:
    return [part for part in _ENDS.split(line) if part.strip()]


def _printable(text: str) -> str:
    return "".join(letter if letter.isprintable() or letter == "\n" else " " for letter in text)


def _letters(text: str) -> str:
    return "".join(letter for letter in text.lower() if letter.isalnum())


# Part of the ids under which answers are kept: other words would ask every model again.
CAPTION = "Describe what this picture shows in one short sentence."
CAPTION_ABOUT = (
    "This picture is meant to show {about}. Describe what it shows in one short sentence."
)
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
    return ANSWER.replace("{question}", question.strip())


def json_instruction(prompt: str, schema: Mapping[str, JsonValue]) -> str:
    return JSON_ANSWER.replace("{schema}", json.dumps(schema, ensure_ascii=False)).replace(
        "{prompt}", prompt
    )


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
