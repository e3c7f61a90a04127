"""Attributes and values that a language model proposes; what it answers is checked, never trusted and never executed."""

from collections.abc import Mapping, Sequence

from pydantic import JsonValue

from weakspot.assign.values import SameMeaning, different, same_spelling
from weakspot.core.assistants import Propose
from weakspot.core.errors import ModelError
from weakspot.lexicon.captions import noun_of
from weakspot.lexicon.vocabulary import WordedAttribute, built_in_attributes

MOST_ATTRIBUTES = 8
MOST_VALUES = 12
MOST_CLASSES = 30


def task_words(task: str, class_names: Sequence[str]) -> str:
    """Return what the images are for, in a sentence.

    >>> task_words("", ["cat", "dog"])
    'Tell apart images of these classes: cat, dog.'
    >>> task_words("Sort fruit", ["apple", "pear"])
    'Sort fruit. The classes are: apple, pear.'
    """
    shown = [noun_of(name) for name in class_names[:MOST_CLASSES]]
    listed = ", ".join(shown) + (
        f" and {len(class_names) - MOST_CLASSES} more" if len(class_names) > MOST_CLASSES else ""
    )
    said = " ".join(task.split()).rstrip(".")
    return (
        f"{said}. The classes are: {listed}."
        if said
        else f"Tell apart images of these classes: {listed}."
    )


def proposed_names(
    propose: Propose, task: str, class_names: Sequence[str], *, same_meaning: SameMeaning
) -> tuple[str, ...]:
    """Return the names of attributes that a language model proposes for a task.

    Raises:
        ModelError: if it does not answer, or names no attribute that can be used.
    """
    prompt = (
        f"An image classifier has this task: {task_words(task, class_names)}\n"
        f"Name at most {MOST_ATTRIBUTES} visual attributes in which images of one and the same class differ, for example the"
        " background, the lighting or the colour. Each must be visible in a single image and have a few different values."
        " The class itself is no attribute.\n"
        'Answer with JSON: {"attributes": ["first attribute", "second attribute"]}'
    )
    answer = propose(prompt, _schema("attributes", fewest=1, most=MOST_ATTRIBUTES))
    nouns = {noun_of(name) for name in class_names}
    names = [
        name for name in different(_texts(answer, "attributes"), same_meaning) if name not in nouns
    ][:MOST_ATTRIBUTES]
    if not names:
        raise ModelError(
            "The language model names no attribute that can be used.", given=str(answer)[:200]
        )
    return tuple(names)


def values_from_model(
    propose: Propose, name: str, task: str, class_names: Sequence[str]
) -> list[str]:
    """Return the values of an attribute that a language model proposes, as it words them.

    Raises:
        ModelError: if it does not answer as it was asked to.
    """
    prompt = (
        f"An image classifier has this task: {task_words(task, class_names)}\n"
        f"List at most {MOST_VALUES} different values, of one or two words each, that the attribute '{name}' can have in such"
        ' images.\nAnswer with JSON: {"values": ["first value", "second value"]}'
    )
    return _texts(propose(prompt, _schema("values", fewest=2, most=MOST_VALUES)), "values")


def built_in_attribute(name: str, same_meaning: SameMeaning) -> WordedAttribute | None:
    """Return the built-in attribute that a name means, or None."""
    for known in built_in_attributes():
        if any(same_spelling(name, other) for other in (known.name, *known.also)):
            return known
    return next((known for known in built_in_attributes() if same_meaning(known.name, name)), None)


def _schema(key: str, *, fewest: int, most: int) -> Mapping[str, JsonValue]:
    return {
        "type": "object",
        "properties": {
            key: {
                "type": "array",
                "items": {"type": "string"},
                "minItems": fewest,
                "maxItems": most,
            }
        },
        "required": [key],
        "additionalProperties": False,
    }


def _texts(answer: JsonValue, key: str) -> list[str]:
    found = answer.get(key) if isinstance(answer, dict) else None
    if not isinstance(found, list):
        raise ModelError(
            f"The language model does not answer with a list of {key}.", given=str(answer)[:200]
        )
    return [item for item in found if isinstance(item, str)]
