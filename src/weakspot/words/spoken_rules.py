"""A person's words as a membership rule: values of columns ("colour = red and size = small") and words of captions."""

import difflib
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import reduce

import numpy as np
import pyarrow as pa

from weakspot.core.dataset import Dataset
from weakspot.core.errors import DataError
from weakspot.core.rules import AllOfRule, ColumnRule, Rule
from weakspot.core.samples import CAPTION_COLUMN
from weakspot.words.caption_rule import CaptionRule
from weakspot.words.caption_words import runs_of_words

MAX_NAMED = 12
MAX_VALUES = 1000
SAYS = frozenset({"says", "contains"})
SAME = (frozenset({"yes", "true", "1"}), frozenset({"no", "false", "0"}))
_AND = re.compile(r"\s+(?:and|&)\s+", re.IGNORECASE)
_PART = re.compile(r"(.+?)\s*(<=|>=|==|=|<|>|\s(?:is|says|contains)\s)\s*(.+)", re.IGNORECASE)
_SIGNS = frozenset({"=", "==", "<", "<=", ">", ">="})


def spoken_rule(
    phrase: str, dataset: Dataset, *, has_text_side: bool, advice: str = ""
) -> Rule | None:
    """Return the rule that a phrase means, or None if it is to be compared with embeddings.

    `colour = red`, `colour is red`, `age >= 60` and `caption says wet road` speak of columns, and `and` joins several. Other words are
    compared with embeddings if these have a text side; else they are looked for in captions, and then among the values of columns.

    Args:
        phrase: a person's words.
        dataset: its columns are meant.
        has_text_side: whether phrases can be compared with embeddings.
        advice: what else could be done about words that mean nothing here.

    Raises:
        DataError: if the column or the value is not there, or nothing can be made of the words.
    """
    columns = {_plain(name): name for name in dataset.metadata_names}
    parts = list(_parts(phrase, columns))
    if parts and not (has_text_side and _names_no_column(parts, columns)):
        return _join([_rule(dataset, columns, *part) for part in parts])
    if has_text_side:
        return None
    if CAPTION_COLUMN in dataset.metadata_names:
        runs = [" ".join(run) for run in runs_of_words(phrase)]
        if runs:
            return _join([CaptionRule(column=CAPTION_COLUMN, words=run) for run in runs])
    return _bare_value(phrase, dataset, advice)


def _parts(phrase: str, columns: Mapping[str, str]) -> Iterator[tuple[str, str, str]]:
    """Yield (column, sign, value) of every part; nothing if the phrase is no statement about columns.

    A part without a sign goes on with the value before it: `place = sand and sea`.
    """
    found: list[tuple[str, str, str]] = []
    for part in _AND.split(phrase.strip()):
        match = _PART.fullmatch(part.strip())
        sign = "" if match is None else match[2].strip().lower()
        is_meant = match is not None and (sign in _SIGNS or _plain(match[1]) in columns)
        if match is not None and is_meant:
            found.append((match[1].strip(), sign, match[3].strip().strip("\"'“”")))
        elif found:
            column, sign, value = found[-1]
            found[-1] = (column, sign, f"{value} and {part.strip()}")
        else:
            return
    yield from found


def _names_no_column(parts: Sequence[tuple[str, str, str]], columns: Mapping[str, str]) -> bool:
    """Return whether signs stand in words that speak of no column, and of none by mistake."""
    return not any(difflib.get_close_matches(_plain(asked), columns, n=1) for asked, _, _ in parts)


def _rule(dataset: Dataset, columns: Mapping[str, str], asked: str, sign: str, value: str) -> Rule:
    column = columns.get(_plain(asked))
    if column is None:
        near = difflib.get_close_matches(_plain(asked), columns, n=1)
        hint = f" (did you mean {columns[near[0]]!r}?)" if near else ""
        raise DataError(
            f"There is no column {asked!r}{hint}.", given=asked, fix=_known_columns(dataset)
        )
    if sign in SAYS:
        words = [" ".join(run) for run in runs_of_words(value)]
        if not words:
            raise DataError("These words say nothing by themselves.", given=value)
        return _join([CaptionRule(column=column, words=one) for one in words])
    if sign in ("=", "==", "is"):
        return ColumnRule(column=column, values=(_value(dataset, column, value),))
    return _range(dataset, column, sign, value)


def _range(dataset: Dataset, column: str, sign: str, value: str) -> ColumnRule:
    kind = dataset.metadata(column).type
    try:
        number = float(value)
    except ValueError:
        number = float("nan")
    is_number = pa.types.is_integer(kind) or pa.types.is_floating(kind)
    if not is_number or not np.isfinite(number):
        raise DataError(
            f"The column {column!r} cannot be compared with {value!r}: both must be numbers.",
            given=f"{column} {sign} {value}",
            fix=f'Ask for a value instead: "{column} = ...".',
        )
    # A rule takes low <= value < high.
    beyond = float(np.nextafter(number, np.inf))
    if sign in (">", ">="):
        return ColumnRule(column=column, low=beyond if sign == ">" else number)
    return ColumnRule(column=column, high=number if sign == "<" else beyond)


def _value(dataset: Dataset, column: str, asked: str) -> str:
    """Return the value of a column that is meant: as it is, in other letters, or yes for true."""
    values = _values(dataset, column)
    plain = asked.lower()
    alike = next((words for words in SAME if plain in words), frozenset({plain}))
    exact = [value for value in values if value == asked]
    same = [value for value in values if value.lower() == plain]
    meant = [*exact, *same, *(value for value in values if value.lower() in alike)]
    if meant:
        return meant[0]
    if _is_same_number(values, asked):
        return next(value for value in values if _number(value) == _number(asked))
    raise DataError(
        f"No sample has {asked!r} in the column {column!r}.",
        given=f"{column} = {asked}",
        fix=f"Its values are {_listed(values)}." if values else "The column is empty.",
    )


def _is_same_number(values: Sequence[str], asked: str) -> bool:
    number = _number(asked)
    return number is not None and any(_number(value) == number for value in values)


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


def _values(dataset: Dataset, column: str) -> list[str]:
    found = dataset.metadata(column)
    if pa.types.is_nested(found.type):
        return []
    return sorted(str(value) for value in found.unique().to_pylist() if value is not None)


def _bare_value(phrase: str, dataset: Dataset, advice: str) -> Rule:
    """Return the rule of words that are one column's value, or the name of a yes/no column (`night`, `no night`)."""
    plain = phrase.strip().lower()
    found: list[ColumnRule] = []
    for column in dataset.metadata_names:
        values = _values(dataset, column)
        if len(values) > MAX_VALUES:
            continue
        found += [
            ColumnRule(column=column, values=(value,)) for value in values if value.lower() == plain
        ]
        for words, said in zip(SAME, (_plain(column), f"no {_plain(column)}"), strict=True):
            is_binary = {value.lower() for value in values} <= SAME[0] | SAME[1]
            if is_binary and _plain(plain) == said:
                meant = tuple(value for value in values if value.lower() in words)
                found += [ColumnRule(column=column, values=meant)] if meant else []
    if len(found) == 1:
        return found[0]
    if found:
        asks = " or ".join(f'"{rule.column} = {rule.values[0]}"' for rule in found[:MAX_NAMED])
        raise DataError(
            f"Several columns hold {phrase!r}.", given=phrase, fix=f"Say which: {asks}."
        )
    raise DataError(
        "These words cannot be compared with the samples: there are no embeddings with a text side and no captions, "
        "and no column holds them.",
        given=phrase,
        fix=f'Ask for a value of a column, as in "colour = red and size = small". {_known_columns(dataset)}{advice}',
    )


def _join(rules: Sequence[Rule]) -> Rule:
    flat = reduce(lambda every, rule: [*every, *rule.parts], rules, list[Rule]())
    return flat[0] if len(flat) == 1 else AllOfRule(rules=tuple(flat))


def _known_columns(dataset: Dataset) -> str:
    names = dataset.metadata_names
    return f"The columns are {_listed(names)}." if names else "The samples have no columns."


def _listed(names: Sequence[str]) -> str:
    further = len(names) - MAX_NAMED
    return ", ".join(names[:MAX_NAMED]) + (f" and {further} more" if further > 0 else "")


def _plain(name: str) -> str:
    return " ".join(name.replace("_", " ").lower().split())
