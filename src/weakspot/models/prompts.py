"""The prompts in which models are asked for captions, answers and JSON, and what is kept of their words.

Few-shot captioning: images with captions that show a chat model how captions are to be written. Thoughts before an answer are dropped.
"""

import csv
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from PIL import Image
from pydantic import JsonValue

from weakspot.core.errors import ConfigError, ModelError
from weakspot.data.images import UnreadableImageError, decode_image
from weakspot.models.loading import file_hash, settings_hash
from weakspot.words.captions import counted, noun_of

_NAMES = "think|thinking|thought|reasoning|reflection"
_OPENED = rf"(?:<(?:{_NAMES})>|\[THINK\]|◁think▷)"
_CLOSED = rf"(?:</(?:{_NAMES})>|\[/THINK\]|◁/think▷)"
# Where the chat's own form opens the thought, only its end stands in the answer.
_THOUGHT = re.compile(rf".*{_CLOSED}", re.DOTALL | re.IGNORECASE)
_WITHOUT_END = re.compile(rf"\s*{_OPENED}.*", re.DOTALL | re.IGNORECASE)


def without_thinking(text: str) -> str:
    r"""Return a model's answer without the thoughts before it; empty if it was cut off while it thought.

    >>> without_thinking("<think>Apples are often red. Is it?</think>\n\ngreen")
    'green'
    >>> without_thinking("Is it ripe? I think so.</think>green"), without_thinking("<think>Well, the apple")
    ('green', '')
    >>> without_thinking("a thinking man")
    'a thinking man'
    """
    spoken, n_thoughts = _THOUGHT.subn("", text, count=1)
    spoken = spoken.lstrip() if n_thoughts else spoken
    return "" if _WITHOUT_END.fullmatch(spoken) else spoken


def spoken_answer(text: str, *, where: str) -> str:
    """Return a local model's answer without the thoughts before it.

    Raises:
        ModelError: if there are only thoughts.
    """
    spoken = without_thinking(text)
    if text.strip() and not spoken.strip():
        raise ModelError(
            "The model's answer was cut off while it was still thinking.",
            where=where,
            given=text[-80:],
            fix="Raise max_new_tokens, or choose a model that answers at once.",
        )
    return spoken


MAX_SENTENCES = 7
MAX_WORDS = 20
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


def short_sentences(text: str, *, beginning: str = "", most: int = MAX_SENTENCES) -> str:
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
        if key not in known and len(sentence.split()) <= MAX_WORDS:
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


MAX_SHOTS = 8
SHOWN = "Caption of this image: {text}"


@dataclass(frozen=True, kw_only=True, eq=False)
class Shot:
    """An image and how a person described it, in a few short sentences."""

    image: Image.Image
    text: str

    @property
    def said(self) -> str:
        return SHOWN.replace("{text}", self.text)


def read_shots(table: str | Path) -> tuple[Shot, ...]:
    """Return the images and captions of a CSV table with the columns `image` (beside the table) and `text`; none without a table.

    Raises:
        ConfigError: if the table, a column or an image cannot be read, or there are none or too many.
    """
    if not str(table):
        return ()
    path = Path(table)
    try:
        with path.open(newline="", encoding="utf-8") as stream:
            rows = list(csv.DictReader(stream))
        shots = tuple(
            Shot(
                image=decode_image((path.parent / row["image"]).read_bytes()).image,
                text=" ".join(row["text"].split()),
            )
            for row in rows
        )
    except (OSError, ValueError, KeyError, AttributeError, UnreadableImageError) as error:
        raise _unusable(path, f"it cannot be read ({type(error).__name__}: {error})") from error
    if not 0 < len(shots) <= MAX_SHOTS or not all(shot.text for shot in shots):
        raise _unusable(path, f"it has {len(shots)} rows, or one without a text")
    return shots


def shots_id(table: str | Path) -> tuple[str, ...]:
    """Return what tells a table and its images from others; nothing without a table, so that older ids stay."""
    if not str(table):
        return ()
    shots = read_shots(table)
    return (file_hash(Path(table)), settings_hash(*[shot.image.tobytes() for shot in shots]))


def _unusable(path: Path, why: str) -> ConfigError:
    return ConfigError(
        f"The examples for captions cannot be used: {why}.",
        where="shots",
        given=str(path),
        fix=f"Give a CSV table with the columns image and text, 1 to {MAX_SHOTS} rows, images beside it.",
    )
