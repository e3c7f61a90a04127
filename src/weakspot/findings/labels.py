"""Labels and predictions as people have them: names or codes, one or several for every sample."""

from collections.abc import Iterable, Sequence
from typing import Any

from weakspot.core.errors import DataError
from weakspot.findings.columns import is_missing, plain_values

SEVERAL = (list, tuple, set, frozenset)
MOST_NAMED = 6


def label_values(column: Any, name: str) -> list[Any]:
    """Return the labels of any one-dimensional thing.

    Raises:
        DataError: if it is a single value, or a matrix of numbers.
    """
    shape: tuple[int, ...] = getattr(column, "shape", ())
    if len(shape) == 2 and shape[1] == 1 and hasattr(column, "reshape"):  # noqa: PLR2004
        column = column.reshape(-1)
    values = plain_values(column, name)
    is_matrix = len(shape) > 1 and any(
        isinstance(one, (int, float, list)) for row in values[:1] if is_several(row) for one in row
    )
    if is_matrix:
        raise DataError(
            f"'{name}' has several numbers for every sample.",
            given=tuple(shape),
            fix="Give one label for every sample, such as scores.argmax(axis=1); for a multi-label task a list of names for each.",
        )
    return values


def is_several(value: object) -> bool:
    return isinstance(value, SEVERAL)


def is_many(labels: Iterable[Any]) -> bool:
    """Return whether a sample may have several labels."""
    return any(map(is_several, labels))


def one_form(values: list[Any], *, of_many: bool | None = None) -> list[Any]:
    """Return labels of a multi-label task as lists, also where one is given alone.

    Raises:
        DataError: if predictions are lists where labels are not, or the other way round.
    """
    known = [value for value in values if value is not None]
    if of_many is not None and known and is_many(known) != of_many:
        kinds = ("lists", "single names") if of_many else ("single names", "lists")
        raise DataError(
            f"Labels are {kinds[0]} but predictions are {kinds[1]}.",
            given=known[0],
            fix="Give one of each for every sample, or a list of each for every sample.",
        )
    if not is_many(known):
        return values
    return [value if value is None or is_several(value) else [value] for value in values]


def named(value: Any, names: Sequence[str]) -> Any:
    """Return the name of a label that may be a code; None where there is none.

    Raises:
        DataError: if a code is none of the classes.
    """
    if is_several(value):
        return [named(one, names) for one in value if not is_missing(one)]
    if is_missing(value):
        return None
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, int) and names:
        if str(value) in names:
            return str(value)
        if 0 <= value < len(names):
            return names[value]
        raise DataError(
            f"The label {value} is none of the {len(names)} classes.",
            fix="Correct it, or give all class names.",
        )
    return str(value)


def check_names(
    labels: Iterable[Any], predictions: Iterable[Any] | None, class_names: Sequence[str]
) -> None:
    """Refuse predictions of classes that no label has, where nobody says which classes there are.

    Raises:
        DataError: naming both.
    """
    true, said = _names_in(labels), _names_in(predictions or ())
    unknown = sorted(said - true)
    if class_names or not true or not unknown:
        return
    fix = "Use the same names for both; if the classifier knows classes that no label has, give all class_names."
    if all(name.isdigit() for name in said) and not any(name.isdigit() for name in true):
        fix = "Predictions are codes: give class_names, in the order of the codes."
    elif all(name.isdigit() for name in true) and not any(name.isdigit() for name in said):
        fix = "Labels are codes: give class_names, in the order of the codes."
    raise DataError(
        f"Predictions name classes that no label has: {_few(unknown)}. Labels are {_few(sorted(true))}.",
        fix=fix,
    )


def _names_in(values: Iterable[Any]) -> set[str]:
    return {
        one
        for value in values
        if value is not None
        for one in (value if is_several(value) else (value,))
    }


def _few(names: Sequence[str]) -> str:
    more = len(names) - MOST_NAMED
    return ", ".join(map(repr, names[:MOST_NAMED])) + (f" and {more} more" if more > 0 else "")
