"""Attributes that people edited, and the columns that follow.

A column never changes what it holds, because stored slices read it: a new name is only a title, and an attribute whose samples get
other values gets a column of its own beside the old one. The name of such a column follows from what it holds, so the same edits
give the same column on any samples.
"""

import hashlib
import json
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from weakspot.assign.bins import words_column
from weakspot.core.arrays import IntArray
from weakspot.core.attributes import WORD_SOURCES, Attribute, AttributeSource, AttributeValue
from weakspot.core.errors import DataError


@dataclass(frozen=True, kw_only=True)
class EditedValue:
    """A value as it is now.

    Args:
        value_id: what stands in the column.
        title: what people call it.
        members: what was merged into it; one for a value that was never merged.
    """

    value_id: str
    title: str
    members: tuple[AttributeValue, ...]


@dataclass(frozen=True, kw_only=True)
class EditedAttribute:
    """An attribute as it is now.

    Args:
        attribute_id: the column that it had first, or the name that it was given first.
        name: what people call it.
        source: where it is from.
        question: what a question answerer was asked.
        values: as they are now.
        base: the attribute before any edit; None if a person added it.
    """

    attribute_id: str
    name: str
    source: AttributeSource
    question: str = ""
    values: tuple[EditedValue, ...] = ()
    base: Attribute | None = field(default=None, compare=False)

    @classmethod
    def of(cls, attribute: Attribute) -> "EditedAttribute":
        """Return an attribute before any edit."""
        return cls(
            attribute_id=attribute.column,
            name=attribute.column,
            source=attribute.source,
            question=attribute.question,
            values=tuple(
                EditedValue(value_id=one.value, title=one.shown, members=(one,))
                for one in attribute.values
            ),
            base=attribute,
        )

    @property
    def spoken_name(self) -> str:
        """Return what phrases call it: without what was added to the name of a column that was taken already."""
        return (
            self.base.name if self.base is not None and self.name == self.base.column else self.name
        )

    @property
    def is_worded(self) -> bool:
        """Return whether its values are told by words."""
        return self.source in WORD_SOURCES

    def value(self, value_id: str) -> EditedValue:
        """Return a value.

        Raises:
            DataError: if there is none of that id.
        """
        found = next((value for value in self.values if value.value_id == value_id), None)
        if found is None:
            raise DataError(
                f"The attribute {self.name!r} has no such value.", where="value", given=value_id
            )
        return found

    @cached_property
    def column(self) -> str:
        """Return the metadata column that holds it."""
        if self.base is not None and not self.is_told_anew and self._groups == self._base_groups:
            return self.base.column
        phrases = (
            [[list(one.phrases) for one in value.members] for value in self.values]
            if self.is_told_anew
            else self._mapped_from
        )
        content = json.dumps([[list(group) for group in self._groups], phrases])
        return f"{self.attribute_id} ({hashlib.sha256(content.encode()).hexdigest()[:8]})"

    @property
    def is_told_anew(self) -> bool:
        """Return whether its words are others than those that the first assignment used, so that a model is needed."""
        if not self.is_worded:
            return False
        before = {} if self.base is None else {one.value: one.phrases for one in self.base.values}
        return before != {one.value: one.phrases for value in self.values for one in value.members}

    @property
    def is_first(self) -> bool:
        """Return whether its column is the one that was there before any edit."""
        return self.base is not None and self.column == self.base.column

    @property
    def _mapped_from(self) -> str:
        return "" if self.base is None else self.base.column

    @property
    def _groups(self) -> tuple[tuple[str, ...], ...]:
        return tuple(
            (value.value_id, *(one.value for one in value.members)) for value in self.values
        )

    @property
    def _base_groups(self) -> tuple[tuple[str, ...], ...]:
        return (
            tuple((one.value, one.value) for one in self.base.values)
            if self.base is not None
            else ()
        )

    @property
    def telling_key(self) -> str:
        """Return what the telling of its words depends on; merging and naming do not touch it."""
        content = json.dumps(
            [[one.value, list(one.phrases)] for value in self.values for one in value.members]
        )
        return hashlib.sha256(content.encode()).hexdigest()[:16]

    def to_tell(self) -> Attribute:
        """Return what a text side is asked: every member as a value of its own, so that what was merged stays apart in telling."""
        members = tuple(
            AttributeValue(value=one.value, phrases=one.phrases, merged=one.merged)
            for value in self.values
            for one in value.members
        )
        return Attribute(
            name=self.telling_key,
            column=self.column,
            source=self.source,
            question=self.question,
            values=members,
        )

    def grouped(self, fine: pa.ChunkedArray | pa.Array) -> pa.Array:
        """Return the column: what its members say, merged; null where a value was deleted."""
        coded = (
            fine.combine_chunks() if isinstance(fine, pa.ChunkedArray) else fine
        ).dictionary_encode()
        place_of = {
            one.value: place for place, value in enumerate(self.values) for one in value.members
        }
        places = np.array(
            [*(place_of.get(str(word), -1) for word in coded.dictionary.to_pylist()), -1],
            dtype=np.int64,
        )
        codes: IntArray = places[np.asarray(pc.fill_null(coded.indices, len(places) - 1))]
        return words_column(codes, tuple(value.value_id for value in self.values))

    def record(
        self, column: pa.Array | pa.ChunkedArray | None, told: Attribute | None = None
    ) -> Attribute:
        """Return the attribute as it is written down.

        Args:
            column: what it holds; None while that is not known, or for the column that was there before any edit.
            told: what telling it from words came to.
        """
        known = told or self.base
        shares = (
            _shares(column)
            if column is not None
            else {one.value: one.share for one in known.values}
            if known
            else {}
        )
        values = tuple(_record(value, shares.get(value.value_id, 0.0)) for value in self.values)
        named = {"name": self.name, "column": self.column, "values": values}
        if known is not None:
            return known.model_copy(update=named)
        return Attribute(source=self.source, question=self.question, **named)


def _record(value: EditedValue, share: float) -> AttributeValue:
    is_merged, only = len(value.members) > 1, value.members[0]
    words = [
        word for one in value.members for word in (*([one.shown] if is_merged else []), *one.merged)
    ]
    return AttributeValue(
        value=value.value_id,
        title="" if value.title == value.value_id else value.title,
        phrases=tuple(phrase for one in value.members for phrase in one.phrases),
        merged=tuple(dict.fromkeys(word for word in words if word != value.title)),
        low=None if is_merged else only.low,
        high=None if is_merged else only.high,
        share=share,
    )


def _shares(column: pa.Array | pa.ChunkedArray) -> dict[str, float]:
    counts = pc.value_counts(column).to_pylist()
    return {
        str(entry["values"]): round(entry["counts"] / max(len(column), 1), 6)
        for entry in counts
        if entry["values"] is not None
    }
