"""Attributes of samples: what can be said of every sample, whatever its class, and how it came to be said.

The values stand in metadata columns of the data set; the records here say what the columns mean.
"""

import json
from collections.abc import Mapping, Sequence
from typing import ClassVar, Literal

import pyarrow as pa

from weakspot.core.record import Record

BOOK_VERSION = 1
_MARK = b"weakspot.attributes"
_MARK_OF_WORDS = b"weakspot.told-by-words"
_MARK_OF_TITLES = b"weakspot.attribute-titles"
_MARK_OF_ADDED = b"weakspot.added-columns"

AttributeSource = Literal["built-in", "proposed", "property", "metadata", "given"]
WORD_SOURCES: frozenset[AttributeSource] = frozenset({"built-in", "proposed", "given"})
"""Sources whose values are told from embeddings by words."""


class AttributeValue(Record):
    """One value of an attribute.

    Args:
        value: what stands in the column; it never changes, because stored slices read it.
        title: what people call it now; empty for the value itself.
        phrases: what it was told from images by; those at even places are one half of the wordings, the others the second half.
        merged: answers that were taken to mean the same.
        low: lower end of a bin of numbers, included; None for no end.
        high: upper end of a bin of numbers, included; None for no end.
        share: share of all samples that have it.
    """

    value: str
    title: str = ""
    phrases: tuple[str, ...] = ()
    merged: tuple[str, ...] = ()
    low: float | None = None
    high: float | None = None
    share: float = 0.0

    @property
    def shown(self) -> str:
        """Return what people call it."""
        return self.title or self.value


class Attribute(Record):
    """One attribute, and the metadata column that holds it.

    Args:
        name: what it is, for example `background`.
        column: the metadata column; another than the name where the data set had a column of that name, or where people edited it.
        source: built-in vocabulary, proposed by a language model, measured property of images, metadata that was there, or given
            in words by a person.
        question: what a question answerer was asked.
        values: in the order of their making; every value of the column is among them.
        cut_points: where numbers were cut into bins.
        unsure_share: share of the samples with an embedding whose value could not be told; the column is null there.
        missing_share: share of all samples of which nothing is known: no embedding, no image, or null in the data.
        agreement: share of reference samples on which both halves of the wordings say the same; None where no words were used.
        least_margin: smallest lead of the best value over the second that is believed; None where no words were used.
    """

    earlier_values: ClassVar[Mapping[str, Mapping[str, str]]] = {
        "name": {"picture size": "image size"},
        "column": {"picture size": "image size"},
    }

    name: str
    column: str
    source: AttributeSource
    question: str = ""
    values: tuple[AttributeValue, ...]
    cut_points: tuple[float, ...] = ()
    unsure_share: float = 0.0
    missing_share: float = 0.0
    agreement: float | None = None
    least_margin: float | None = None


class AttributeBook(Record):
    """All attributes of a project's samples, and what was left out.

    Args:
        book_version: layout of this record.
        encoder_id: whose embeddings were compared with phrases; empty if none.
        attributes: in the order in which they were made.
        notes: what was left out or done otherwise, in sentences.
    """

    book_version: int = BOOK_VERSION
    encoder_id: str = ""
    attributes: tuple[Attribute, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def columns(self) -> tuple[str, ...]:
        return tuple(attribute.column for attribute in self.attributes)


def mark_attributes(table: pa.Table, columns: Sequence[str]) -> pa.Table:
    """Return the table with a mark that says which of its metadata columns (names without prefix) are attributes."""
    return table.replace_schema_metadata(
        {**(table.schema.metadata or {}), _MARK: json.dumps(list(columns)).encode()}
    )


def marked_attributes(table: pa.Table) -> tuple[str, ...] | None:
    """Return which metadata columns are attributes, or None if nobody has said so.

    >>> marked_attributes(mark_attributes(pa.table({"meta.site": ["north"]}), ["site"]))
    ('site',)
    """
    mark = (table.schema.metadata or {}).get(_MARK)
    return None if mark is None else tuple(str(name) for name in json.loads(mark))


def mark_told_by_words(table: pa.Table, columns: Sequence[str]) -> pa.Table:
    """Return the table with a mark that says which metadata columns were told from embeddings by words.

    Such a column repeats what the encoder says, so it is no independent witness of words that the encoder chose.
    """
    return table.replace_schema_metadata(
        {**(table.schema.metadata or {}), _MARK_OF_WORDS: json.dumps(list(columns)).encode()}
    )


def told_by_words(table: pa.Table) -> frozenset[str]:
    """Return which metadata columns were told from embeddings by words.

    >>> sorted(told_by_words(mark_told_by_words(pa.table({"meta.colour": ["green"]}), ["colour"])))
    ['colour']
    """
    mark = (table.schema.metadata or {}).get(_MARK_OF_WORDS)
    return frozenset() if mark is None else frozenset(str(name) for name in json.loads(mark))


Titles = Mapping[str, tuple[str, Mapping[str, str]]]
"""Of metadata columns: what the attribute is called, and what those of its values are called that people renamed."""


def titles_of(attributes: Sequence[Attribute]) -> Titles:
    """Return what columns and values are called."""
    return {
        each.column: (
            each.name,
            {
                value.value: value.title
                for value in each.values
                if value.title and value.title != value.value
            },
        )
        for each in attributes
    }


def mark_titles(table: pa.Table, titles: Titles) -> pa.Table:
    """Return the table with a mark that says what its columns and values are called."""
    content = {column: [name, dict(values)] for column, (name, values) in titles.items()}
    return table.replace_schema_metadata(
        {**(table.schema.metadata or {}), _MARK_OF_TITLES: json.dumps(content).encode()}
    )


def shown_as(table: pa.Table, column: str, value: str) -> tuple[str, str]:
    """Return what people call a column and one of its values; as they are where nobody has said otherwise.

    >>> table = mark_titles(pa.table({"meta.colour (1f)": ["green"]}), {"colour (1f)": ("hue", {"green": "unripe"})})
    >>> shown_as(table, "colour (1f)", "green"), shown_as(table, "site", "north")
    (('hue', 'unripe'), ('site', 'north'))
    """
    mark = (table.schema.metadata or {}).get(_MARK_OF_TITLES)
    name, values = (json.loads(mark) if mark else {}).get(column, (column, {}))
    return str(name), str(values.get(value, value))


def mark_added(table: pa.Table, columns: Sequence[str]) -> pa.Table:
    """Return the table with a mark that says which metadata columns were computed, and so are none of the user's."""
    return table.replace_schema_metadata(
        {**(table.schema.metadata or {}), _MARK_OF_ADDED: json.dumps(list(columns)).encode()}
    )


def added_columns(table: pa.Table) -> tuple[str, ...]:
    """Return which metadata columns were computed.

    >>> added_columns(mark_added(pa.table({"meta.colour": ["green"]}), ["colour"]))
    ('colour',)
    """
    mark = (table.schema.metadata or {}).get(_MARK_OF_ADDED)
    return () if mark is None else tuple(str(name) for name in json.loads(mark))
