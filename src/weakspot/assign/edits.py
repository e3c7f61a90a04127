"""What people changed in the attributes, as records: an append-only list, in which undoing is an entry too."""

from typing import Literal

from weakspot.core.record import Record

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
    attribute: str = ""
    values: tuple[str, ...] = ()
    title: str = ""
    given: tuple[GivenValue, ...] = ()
    question: str = ""
    to: str = ""
    target: int = 0


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
