"""Values that a language model proposes; its answers are read as data and never trusted to have the right form."""

from dataclasses import dataclass

from pydantic import JsonValue

from weakspot.core.assistants import Propose
from weakspot.core.errors import WeakspotError
from weakspot.lexicon.captions import counted, plain_caption
from weakspot.lexicon.uncommon_vocabulary import Axis

LONGEST_VALUE = 60
PATIENCE = 3
SCHEMA: dict[str, JsonValue] = {
    "type": "object",
    "properties": {"values": {"type": "array", "items": {"type": "string"}}},
    "required": ["values"],
}
_ARTICLES = ("a", "an", "the")
_READY_TEXT = """
    in on at under behind near beside inside outside with without over by against above below among through between along around
    underwater indoors outdoors surrounded next
"""
_READY = frozenset(_READY_TEXT.split())


@dataclass(kw_only=True)
class Proposer:
    """Asks a language model, until it has failed too often.

    Args:
        propose: the model.
        n_values: how many values are wanted.
        n_failed: how often it gave nothing of use, without an answer in between.
    """

    propose: Propose | None
    n_values: int
    n_failed: int = 0
    last: str = ""

    def values(self, class_name: str, axis: Axis) -> tuple[str, ...]:
        """Return what the model lists; () if it cannot be asked or its answer is of no use."""
        if self.propose is None or self.n_failed >= PATIENCE:
            return ()
        prompt = (
            f"{axis.question_for(class_name)} List {self.n_values} values of {axis.name}, each in the form of {axis.example!r}, "
            f"so that `{axis.caption(plain_caption(class_name).noun, '...').phrase}` makes sense."
        )
        try:
            found = usable_values(self.propose(prompt, SCHEMA), axis)[: self.n_values]
        except WeakspotError as error:
            found, self.last = (), error.what
        else:
            self.last = "" if found else "Its answer lists nothing."
        self.n_failed = 0 if found else self.n_failed + 1
        return found


def usable_values(answer: JsonValue, axis: Axis) -> tuple[str, ...]:
    """Return the values in a language model's answer, in the form that captions need; () if there are none.

    >>> from weakspot.lexicon.uncommon_vocabulary import uncommon_axes
    >>> usable_values({"values": ["Deserts.", "on a Beach", "", 3, "deserts"]}, uncommon_axes()["background"])
    ('in deserts', 'on a beach')
    """
    listed = answer.get("values") if isinstance(answer, dict) else answer
    if not isinstance(listed, list):
        return ()
    texts = [" ".join(value.split()).strip(" .,;:!?\"'`*-") for value in listed if isinstance(value, str)]
    return tuple(dict.fromkeys(_in_form(text, axis) for text in texts if 0 < len(text) <= LONGEST_VALUE))


def _in_form(text: str, axis: Axis) -> str:
    words = (text if text.isupper() else text.lower()).split()
    if axis.slot != "place":
        return " ".join(words[1:] if words[0] in _ARTICLES and len(words) > 1 else words)
    is_ready = axis.name != "background" or words[0] in _READY
    if is_ready:
        return " ".join(words)
    has_article = words[0] in _ARTICLES
    return f"in {' '.join(words) if has_article else counted(' '.join(words), ' '.join(words))}"
