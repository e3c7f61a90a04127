"""Words that reading the text in an image can tell: with text, with the word X, with a date stamp, with a price tag."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from functools import partial

from weakspot.backends.embedded.text_reader import TextLine, TextReader, lines_in
from weakspot.pipeline.models.witnesses.witness import SEEN, Judge, Looker, surely

TEXT, NO_TEXT = "with text", "without text"
LEAST_CONFIDENCE = 0.75
MOST_SHARE = 0.6
LEAST_CHARACTERS = 2
LEAST_LIKENESS = 0.75
_TEXT = re.compile(
    r"(with |showing |bearing )?(some |a |the )?(visible |written |printed )?"
    r"(text|texts|writing|words|lettering|letters|inscription|caption)"
    r"( on (it|them)| in the image)?"
    r"|with an? (watermark|label|sticker|inscription)"
)
_NO_TEXT = re.compile(r"(without|with no) (any )?(text|writing|words|lettering)")
_WORD = re.compile(r"with the (?:words?|text) [\"'“‘]?(.+?)[\"'”’]?(?: on (?:it|them))?")
_DATED = re.compile(r"with an? (date stamp|date|time ?stamp)")
_PRICED = re.compile(r"with an? (price|price tag|price label)")
_DATE = re.compile(r"(?<!\d)('?\d{2}|\d{4})[-/. ]+\d{1,2}[-/. ]+\d{1,4}")
_PRICE = re.compile(r"(?<![\d.,])\d{1,4}[.,]\d{2}(?![\d.,])|[€$£¥] ?\d|\d ?[€£]|\d{1,4}:-")


@dataclass(frozen=True, kw_only=True)
class TextWitness:
    """Reads the text in images.

    Args:
        reader: finds and reads it.
    """

    reader: TextReader
    kind: str = "text"
    is_by_class: bool = False

    def looker(self, class_name: str) -> Looker:
        del class_name
        return self.reader

    def judge(self, words: str) -> Judge | None:
        """Return how words are told: any text, a certain word, a date or a price in it."""
        plain = " ".join(words.lower().split())
        if _TEXT.fullmatch(plain):
            return partial(_best, measure=_any_text)
        if _NO_TEXT.fullmatch(plain):
            return lambda said: 1.0 - _best(said, measure=_any_text)
        for pattern, wanted in ((_DATED, _DATE), (_PRICED, _PRICE)):
            if pattern.fullmatch(plain):
                return partial(_best, measure=partial(_matching, pattern=wanted))
        named = _WORD.fullmatch(plain)
        letters = _letters(named[1]) if named else ""
        return partial(_best, measure=partial(_likeness, wanted=letters)) if letters else None

    def tags(self, said: str) -> Mapping[str, str]:
        return {"text in the image": TEXT if self._has_text(said) else NO_TEXT}

    def phrase(self, said: str) -> str:
        return TEXT if self._has_text(said) else ""

    def _has_text(self, said: str) -> bool:
        return _best(said, measure=_any_text) >= SEEN


def _best(said: str, *, measure: Callable[[TextLine], float]) -> float:
    return max((measure(line) for line in _plausible(lines_in(said))), default=0.0)


def _plausible(lines: Sequence[TextLine]) -> list[TextLine]:
    """Return lines without those that cover nearly all of the image or have one character: patterns, not text."""
    return [
        line
        for line in lines
        if line.share <= MOST_SHARE and len(_letters(line.text)) >= LEAST_CHARACTERS
    ]


def _any_text(line: TextLine) -> float:
    return surely(line.confidence, LEAST_CONFIDENCE)


def _matching(line: TextLine, *, pattern: re.Pattern[str]) -> float:
    return surely(line.confidence, LEAST_CONFIDENCE) if pattern.search(line.text) else 0.0


def _likeness(line: TextLine, *, wanted: str) -> float:
    """Return how much a line, or one of its words, is like a word; letters that are misread cost a part."""
    text = _letters(line.text)
    candidates = [_letters(word) for word in line.text.split()] + [text]
    likeness = max(SequenceMatcher(None, one, wanted).ratio() for one in candidates)
    likeness = 1.0 if wanted in text else likeness
    return surely(likeness, LEAST_LIKENESS) * min(1.0, surely(line.confidence, 0.5))


def _letters(text: str) -> str:
    return "".join(one for one in text.lower() if one.isalnum())
