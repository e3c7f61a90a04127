"""The attributes of a project after people's edits, by doing the edits one after the other on what was assigned first."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from weakspot.assign.edited_attributes import EditedAttribute, EditedValue
from weakspot.assign.edits import AttributeEdit, EditKind, EditLog, GivenValue
from weakspot.core.attributes import Attribute, AttributeBook, AttributeValue
from weakspot.core.errors import DataError

FEWEST_VALUES = 2
MOST_VALUES = 50
MOST_ATTRIBUTES = 100
FEWEST_PHRASES = 2


@dataclass(frozen=True, kw_only=True, eq=False)
class EditedBook:
    """The attributes as they are now.

    Args:
        attributes: in the order of their making.
        notes: edits that could not be done, and why.
        skipped: the numbers of those edits.
    """

    attributes: tuple[EditedAttribute, ...]
    notes: tuple[str, ...] = ()
    skipped: frozenset[int] = frozenset()


def edited_book(book: AttributeBook, log: EditLog) -> EditedBook:
    """Return the attributes of a book after the edits that hold; an edit that does not fit any more is left out with a note."""
    desk, notes, skipped = _Desk(book.attributes), [], set()
    for entry in log.active():
        try:
            desk.do(entry.edit)
        except DataError as error:
            skipped.add(entry.number)
            notes.append(
                f"The edit {entry.number} of attributes ({entry.sentence or entry.edit.kind}) is left out: {error.what}"
            )
    return EditedBook(
        attributes=tuple(desk.attributes.values()), notes=tuple(notes), skipped=frozenset(skipped)
    )


def checked_edit(book: AttributeBook, log: EditLog, edit: AttributeEdit) -> str:
    """Return an edit in words.

    Raises:
        DataError: if it cannot be done now.
    """
    if edit.kind in ("undo", "redo"):
        return _checked_undoing(book, log, edit)
    now = edited_book(book, log)
    desk = _Desk((), now.attributes)
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
    before = edited_book(book, log).skipped
    entry = meant.model_copy(update={"number": log.version + 1, "edit": edit})
    broken = edited_book(book, EditLog(entries=(*log.entries, entry))).skipped - before
    if broken:
        raise DataError(
            f"The edit {edit.target} cannot be {'undone' if edit.kind == 'undo' else 'done again'} alone.",
            where="target",
            fix=f"First undo the edit {max(broken)}.",
        )
    return f"{'Undo' if edit.kind == 'undo' else 'Do again'} edit {edit.target}: {meant.sentence}"


def _sentence(desk: "_Desk", edit: AttributeEdit) -> str:
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


class _Desk:
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
        if not FEWEST_VALUES <= len(values) <= MOST_VALUES:
            fix = "Delete the attribute instead." if len(values) < FEWEST_VALUES else None
            raise DataError(
                f"An attribute has {FEWEST_VALUES} to {MOST_VALUES} values.",
                where=attribute.name,
                fix=fix,
            )
        self.attributes[attribute.attribute_id] = replace(attribute, values=tuple(values))

    def _add_attribute(self, edit: AttributeEdit) -> None:
        name = _name(edit.title)
        self._refuse_known_name(name)
        if len(self.attributes) >= MOST_ATTRIBUTES:
            raise DataError(
                f"There are {MOST_ATTRIBUTES} attributes already.", fix="Delete one first."
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
        if len(meant) < FEWEST_VALUES:
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
        if len(phrases) < FEWEST_PHRASES:
            raise DataError(f"A value needs at least {FEWEST_PHRASES} phrases.", where="phrases")
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
        if len(each.phrases) < FEWEST_PHRASES:
            raise DataError(f"A value needs at least {FEWEST_PHRASES} phrases.", where=name)
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
