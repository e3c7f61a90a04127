"""What people changed in the attributes: an append-only list of edits, and the attributes and columns that follow from it.

A column never changes what it holds, because stored slices read it: a new name is only a title, and an attribute whose samples get
other values gets a column of its own beside the old one. The name of such a column follows from what it holds, so the same edits
give the same column on any samples.
"""

import hashlib
import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Annotated, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pydantic import Field, StringConstraints

from weakspot.core.arrays import IntArray
from weakspot.core.errors import DataError
from weakspot.core.record import Record
from weakspot.core.samples import (
    WORD_SOURCES,
    Attribute,
    AttributeBook,
    AttributeSource,
    AttributeValue,
)
from weakspot.words.attribute_columns import words_column

EditKind = Literal[
    "add attribute",
    "rename attribute",
    "delete attribute",
    "add value",
    "rename value",
    "merge values",
    "delete value",
    "move value",
    "change phrases",
    "undo",
    "redo",
]


MAX_VALUES = 50
MAX_EDITS = 2000
MAX_ID_LENGTH, MAX_NAME_LENGTH, MAX_PHRASE_LENGTH = 300, 80, 200

Identifier = Annotated[str, StringConstraints(max_length=MAX_ID_LENGTH)]
Name = Annotated[str, StringConstraints(max_length=MAX_NAME_LENGTH)]
Phrase = Annotated[str, StringConstraints(max_length=MAX_PHRASE_LENGTH)]


class GivenValue(Record):
    """A value as a person gives it.

    Args:
        title: what it is called.
        phrases: what it is told from images by; those at even places are one half of the wordings, the others the second half.
    """

    title: str
    phrases: tuple[str, ...] = ()


class AttributeEdit(Record):
    """One change.

    Args:
        kind: what is changed.
        attribute: id of the attribute; empty for a new one.
        values: ids of the values meant; of those that are merged, the first stays.
        title: the new name of the attribute, value or merged value.
        given: new values, or the new phrases of one.
        question: what a question answerer was asked for a new attribute.
        to: id of the attribute that a value is moved to.
        target: number of the edit that is undone or done again.
    """

    kind: EditKind
    attribute: Identifier = ""
    values: tuple[Identifier, ...] = Field(default=(), max_length=MAX_VALUES)
    title: Name = ""
    given: tuple[GivenValue, ...] = ()
    question: Phrase = ""
    to: Identifier = ""
    target: int = Field(default=0, ge=0, le=MAX_EDITS)


class LoggedEdit(Record):
    """A change with its number, and who made it when.

    Args:
        number: its place in the log, from 1.
        edit: the change.
        by: who made it.
        time: ISO 8601, UTC.
        sentence: the change in words, as things were called then.
    """

    number: int
    edit: AttributeEdit
    by: str
    time: str
    sentence: str = ""


class EditLog(Record):
    """All changes of a project, oldest first; nothing is ever taken out.

    Args:
        entries: the changes.
    """

    entries: tuple[LoggedEdit, ...] = ()

    @property
    def version(self) -> int:
        """Return how many changes there were: whoever changes something says which version was seen."""
        return len(self.entries)

    def undone(self) -> frozenset[int]:
        """Return the numbers of the changes that are undone now.

        >>> first = LoggedEdit(number=1, edit=AttributeEdit(kind="delete attribute", attribute="place"), by="", time="")
        >>> second = LoggedEdit(number=2, edit=AttributeEdit(kind="undo", target=1), by="", time="")
        >>> sorted(EditLog(entries=(first, second)).undone())
        [1]
        """
        found: set[int] = set()
        for entry in self.entries:
            if entry.edit.kind == "undo":
                found.add(entry.edit.target)
            elif entry.edit.kind == "redo":
                found.discard(entry.edit.target)
        return frozenset(found)

    def active(self) -> tuple[LoggedEdit, ...]:
        """Return the changes that hold now."""
        undone = self.undone()
        return tuple(
            entry
            for entry in self.entries
            if entry.edit.kind not in ("undo", "redo") and entry.number not in undone
        )

    def at(self, version: int) -> "EditLog":
        return EditLog(entries=self.entries[:version])


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
            else ("" if self.base is None else self.base.column)
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


MIN_VALUES = 2
MAX_ATTRIBUTES = 100
MIN_PHRASES = 2


def edited_book(
    book: AttributeBook, log: EditLog
) -> tuple[tuple[EditedAttribute, ...], dict[int, str]]:
    """Return the attributes of a book after the edits that hold, and by number why edits that do not fit any more are left out."""
    desk, left_out = _AttributeEditor(book.attributes), {}
    for entry in log.active():
        try:
            desk.do(entry.edit)
        except DataError as error:
            left_out[entry.number] = (
                f"The edit {entry.number} of attributes ({entry.sentence or entry.edit.kind}) is left out: {error.what}"
            )
    return tuple(desk.attributes.values()), left_out


def checked_edit(book: AttributeBook, log: EditLog, edit: AttributeEdit) -> str:
    """Return an edit in words.

    Raises:
        DataError: if it cannot be done now.
    """
    if edit.kind in ("undo", "redo"):
        return _checked_undoing(book, log, edit)
    desk = _AttributeEditor((), edited_book(book, log)[0])
    sentence = _sentence(desk, edit)
    desk.do(edit)
    return sentence


def _checked_undoing(book: AttributeBook, log: EditLog, edit: AttributeEdit) -> str:
    meant = next((entry for entry in log.entries if entry.number == edit.target), None)
    if meant is None or meant.edit.kind in ("undo", "redo"):
        raise DataError(f"There is no edit {edit.target} that could be undone.", where="target")
    if (edit.target in log.undone()) == (edit.kind == "undo"):
        raise DataError(
            f"The edit {edit.target} {'is undone' if edit.kind == 'undo' else 'holds'} already.",
            where="target",
        )
    _, before = edited_book(book, log)
    entry = meant.model_copy(update={"number": log.version + 1, "edit": edit})
    _, after = edited_book(book, EditLog(entries=(*log.entries, entry)))
    broken = after.keys() - before.keys()
    if broken:
        raise DataError(
            f"The edit {edit.target} cannot be {'undone' if edit.kind == 'undo' else 'done again'} alone.",
            where="target",
            fix=f"First undo the edit {max(broken)}.",
        )
    return f"{'Undo' if edit.kind == 'undo' else 'Do again'} edit {edit.target}: {meant.sentence}"


def _sentence(desk: "_AttributeEditor", edit: AttributeEdit) -> str:
    title, given = edit.title, ", ".join(f"“{value.title}”" for value in edit.given)
    if edit.kind == "add attribute":
        return f"Add “{title}” with {given}"
    attribute = desk.attribute(edit.attribute)
    meant = ", ".join(f"“{attribute.value(value).title}”" for value in edit.values)
    words: dict[EditKind, str] = {
        "rename attribute": f"Call “{attribute.name}” “{title}”",
        "delete attribute": f"Delete “{attribute.name}”",
        "add value": f"Add {given} to “{attribute.name}”",
        "rename value": f"Call {meant} of “{attribute.name}” “{title}”",
        "merge values": f"Merge {meant} of “{attribute.name}” into “{title}”",
        "delete value": f"Delete {meant} of “{attribute.name}”",
        "move value": f"Move {meant} from “{attribute.name}” to “{desk.attribute(edit.to).name if edit.to else ''}”",
        "change phrases": f"Other phrases for {meant} of “{attribute.name}”",
    }
    return words[edit.kind]


class _AttributeEditor:
    """Where edits are done, one after the other."""

    def __init__(self, book: Iterable[Attribute], edited: Iterable[EditedAttribute] = ()) -> None:
        given = [EditedAttribute.of(attribute) for attribute in book]
        self.attributes = {each.attribute_id: each for each in (*given, *edited)}
        self._ways: dict[EditKind, Callable[[AttributeEdit], None]] = {
            "add attribute": self._add_attribute,
            "rename attribute": self._rename_attribute,
            "delete attribute": self._delete_attribute,
            "add value": self._add_value,
            "rename value": self._rename_value,
            "merge values": self._merge,
            "delete value": self._delete_value,
            "move value": self._move,
            "change phrases": self._change_phrases,
        }

    def do(self, edit: AttributeEdit) -> None:
        """Do an edit, or raise a `DataError` and change nothing."""
        self._ways[edit.kind](edit)

    def attribute(self, attribute_id: str) -> EditedAttribute:
        if attribute_id not in self.attributes:
            raise DataError("There is no such attribute.", where="attribute", given=attribute_id)
        return self.attributes[attribute_id]

    def _keep(self, attribute: EditedAttribute, values: Sequence[EditedValue]) -> None:
        if not MIN_VALUES <= len(values) <= MAX_VALUES:
            fix = "Delete the attribute instead." if len(values) < MIN_VALUES else None
            raise DataError(
                f"An attribute has {MIN_VALUES} to {MAX_VALUES} values.",
                where=attribute.name,
                fix=fix,
            )
        self.attributes[attribute.attribute_id] = replace(attribute, values=tuple(values))

    def _add_attribute(self, edit: AttributeEdit) -> None:
        name = _name(edit.title)
        self._refuse_known_name(name)
        if len(self.attributes) >= MAX_ATTRIBUTES:
            raise DataError(
                f"There are {MAX_ATTRIBUTES} attributes already.", fix="Delete one first."
            )
        empty = EditedAttribute(
            attribute_id=name, name=name, source="given", question=edit.question, values=()
        )
        self._keep(empty, _with_given(empty, edit.given))

    def _refuse_known_name(self, name: str, *, besides: str = "") -> None:
        others = [each for each in self.attributes.values() if each.attribute_id != besides]
        if any(name.lower() in (each.name.lower(), each.attribute_id.lower()) for each in others):
            raise DataError(
                "There is an attribute of that name, or one that was once called so.",
                where="title",
                given=name,
            )

    def _rename_attribute(self, edit: AttributeEdit) -> None:
        found, name = self.attribute(edit.attribute), _name(edit.title)
        self._refuse_known_name(name, besides=found.attribute_id)
        self.attributes[found.attribute_id] = replace(found, name=name)

    def _delete_attribute(self, edit: AttributeEdit) -> None:
        del self.attributes[self.attribute(edit.attribute).attribute_id]

    def _add_value(self, edit: AttributeEdit) -> None:
        found = self._word(edit.attribute)
        self._keep(found, _with_given(found, edit.given))

    def _rename_value(self, edit: AttributeEdit) -> None:
        found = self.attribute(edit.attribute)
        (meant,) = _meant(found, edit, n=1)
        name = _name(edit.title)
        _refuse_known_value([value for value in found.values if value is not meant], name)
        self._keep(
            found,
            [replace(value, title=name) if value is meant else value for value in found.values],
        )

    def _merge(self, edit: AttributeEdit) -> None:
        found = self.attribute(edit.attribute)
        meant = _meant(found, edit)
        if len(meant) < MIN_VALUES:
            raise DataError("Choose at least two values to merge.", where="values")
        name = _name(edit.title or meant[0].title)
        kept = [value for value in found.values if value not in meant]
        _refuse_known_value(kept, name)
        merged = replace(
            meant[0],
            title=name,
            members=tuple(member for value in meant for member in value.members),
        )
        self._keep(
            found,
            [
                merged if value is meant[0] else value
                for value in found.values
                if value not in meant[1:]
            ],
        )

    def _delete_value(self, edit: AttributeEdit) -> None:
        found = self.attribute(edit.attribute)
        meant = _meant(found, edit)
        self._keep(found, [value for value in found.values if value not in meant])

    def _move(self, edit: AttributeEdit) -> None:
        found, to = self._word(edit.attribute), self._word(edit.to)
        (meant,) = _meant(found, edit, n=1)
        if found is to:
            raise DataError("Choose another attribute to move the value to.", where="to")
        _refuse_known_value(to.values, meant.title)
        members = tuple(
            member.model_copy(
                update={"value": meant.title if place == 0 else f"{meant.title} / {member.shown}"}
            )
            for place, member in enumerate(meant.members)
        )
        remaining = [value for value in found.values if value is not meant]
        moved = EditedValue(value_id=meant.title, title=meant.title, members=members)
        self._keep(to, [*to.values, moved])
        try:
            self._keep(found, remaining)
        except DataError:
            self.attributes[to.attribute_id] = to
            raise

    def _change_phrases(self, edit: AttributeEdit) -> None:
        found = self._word(edit.attribute)
        (meant,) = _meant(found, edit, n=1)
        phrases = edit.given[0].phrases if edit.given else ()
        if len(phrases) < MIN_PHRASES:
            raise DataError(f"A value needs at least {MIN_PHRASES} phrases.", where="phrases")
        only = AttributeValue(
            value=meant.value_id,
            phrases=phrases,
            merged=tuple(each.value for each in meant.members[1:]),
        )
        self._keep(
            found,
            [
                replace(value, members=(only,)) if value is meant else value
                for value in found.values
            ],
        )

    def _word(self, attribute_id: str) -> EditedAttribute:
        found = self.attribute(attribute_id)
        if not found.is_worded:
            raise DataError(
                f"The values of {found.name!r} are not told by words, so only names can be changed, and values merged or deleted.",
                where="attribute",
                fix="Add an attribute of your own instead.",
            )
        return found


def _meant(
    attribute: EditedAttribute, edit: AttributeEdit, *, n: int | None = None
) -> list[EditedValue]:
    if not edit.values or len(edit.values) != (n or len(edit.values)):
        raise DataError(
            "Say which value is meant." if n else "Say which values are meant.", where="values"
        )
    return [attribute.value(value) for value in dict.fromkeys(edit.values)]


def _with_given(attribute: EditedAttribute, given: Sequence[GivenValue]) -> list[EditedValue]:
    if not given:
        raise DataError("Give at least one value.", where="given")
    values = list(attribute.values)
    for each in given:
        name = _name(each.title)
        _refuse_known_value(values, name)
        if len(each.phrases) < MIN_PHRASES:
            raise DataError(f"A value needs at least {MIN_PHRASES} phrases.", where=name)
        member = AttributeValue(value=name, phrases=each.phrases)
        values.append(EditedValue(value_id=name, title=name, members=(member,)))
    return values


def _refuse_known_value(values: Iterable[EditedValue], name: str) -> None:
    known = {
        text.lower()
        for value in values
        for text in (value.value_id, value.title, *(one.value for one in value.members))
    }
    if name.lower() in known:
        raise DataError(
            "There is a value of that name, or one that was once called so.",
            where="title",
            given=name,
        )


def _name(text: str) -> str:
    name = " ".join(text.split())
    if not name or not name.isprintable():
        raise DataError(
            "A name needs at least one letter, and none that cannot be printed.",
            where="title",
            given=text,
        )
    return name
