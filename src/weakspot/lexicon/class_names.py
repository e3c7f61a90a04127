"""Classes that people name in passing."""

import re
from collections.abc import Sequence

from weakspot.core.errors import ConfigError
from weakspot.lexicon.paraphrases import noun_forms

MOST_LISTED = 12


def class_in(phrases: Sequence[str], class_names: Sequence[str]) -> str:
    """Return the one class that phrases name, in the singular or the plural; with one class only, that one.

    Raises:
        ConfigError: if they name none, or several.

    >>> class_in(["green apples"], ["apple", "pear"])
    'apple'
    """
    if len(class_names) == 1:
        return class_names[0]
    said = f" {' '.join(_words(phrase) for phrase in phrases)} "
    named = [name for name in class_names if any(f" {form} " in said for form in _forms(name))]
    # "polar bear" names a bear, too: the longest name is meant.
    meant = [
        name
        for name in named
        if not any(name != other and _words(name) in _words(other) for other in named)
    ]
    if len(meant) == 1:
        return meant[0]
    listed = ", ".join(class_names[:MOST_LISTED]) + (
        " ..." if len(class_names) > MOST_LISTED else ""
    )
    raise ConfigError(
        f"These words name {'no class' if not meant else 'several classes: ' + ', '.join(meant)}.",
        given=", ".join(phrases),
        fix=f"Say which class they are about: --class NAME, one of {listed}.",
    )


def _words(text: str) -> str:
    return " ".join(re.findall(r"\w+", text.lower().replace("_", " ")))


def _forms(name: str) -> tuple[str, ...]:
    words = _words(name)
    return (words, *noun_forms(words)) if words else ()
