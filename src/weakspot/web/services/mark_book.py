"""Marks as pages know them, and the samples that a mark chooses."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Protocol

from weakspot.web.services.view import Moment, View

ANY, NONE, TAG = "any", "none", "tag:"


class MarkKind(StrEnum):
    """What can be said of a sample. It has at most one of the first two, and any number of notes and tags."""

    LABEL = "label"
    UNUSABLE = "unusable"
    NOTE = "note"
    TAG = "tag"


ALONE = (MarkKind.LABEL, MarkKind.UNUSABLE)
"""Of these a sample has one at most: what is said last takes the place of what was said before."""


class Mark(View):
    """Something that a person said of a sample.

    Args:
        mark_id: its number.
        kind: what was said.
        labels: the right labels, if the given one is wrong; empty if the right one is not known.
        text: of a note or a tag.
        by: who said it.
        time: when.
        change_id: the change that made it.
    """

    mark_id: int
    kind: MarkKind
    labels: list[str]
    text: str
    by: str
    time: Moment
    change_id: int

    @property
    def words(self) -> str:
        """Return the mark in a few words."""
        if self.kind is MarkKind.LABEL:
            return (
                f"label is wrong, it is {', '.join(self.labels)}"
                if self.labels
                else "label is wrong"
            )
        return "unusable" if self.kind is MarkKind.UNUSABLE else f"{self.kind.value}: {self.text}"


@dataclass(frozen=True, kw_only=True, eq=False)
class MarkBook:
    """All marks that hold.

    Args:
        version: differs whenever a mark does.
        by_sample: marks by the id of their sample, oldest first.
    """

    version: int = 0
    by_sample: Mapping[str, tuple[Mark, ...]] = field(default_factory=dict)

    def of(self, sample_id: str) -> tuple[Mark, ...]:
        return self.by_sample.get(sample_id, ())

    def samples(self, wanted: str) -> Iterator[str]:
        """Return the ids of samples with a mark.

        Args:
            wanted: `any`, a kind, or `tag:` and the tag.
        """
        for sample_id, marks in self.by_sample.items():
            if any(_is_wanted(one, wanted) for one in marks):
                yield sample_id

    def counts(self) -> dict[str, int]:
        """Return how many samples have each kind of mark."""
        found = Counter(
            kind for marks in self.by_sample.values() for kind in {m.kind for m in marks}
        )
        return {kind.value: found[kind] for kind in MarkKind}

    def tags(self) -> list[str]:
        """Return all tags, most frequent first."""
        return [tag for tag, _ in Counter(self._tags()).most_common()]

    def _tags(self) -> Iterable[str]:
        every = (one for marks in self.by_sample.values() for one in marks)
        return (one.text for one in every if one.kind is MarkKind.TAG)


def _is_wanted(mark: Mark, wanted: str) -> bool:
    if wanted.startswith(TAG):
        return mark.kind is MarkKind.TAG and mark.text == wanted.removeprefix(TAG)
    return wanted in (ANY, mark.kind.value)


class Shared(Protocol):
    """What people share that queries of images may ask for."""

    def marks(self) -> MarkBook:
        """Return all marks that hold."""
        ...

    def selection(self, selection_id: str) -> list[str] | None:
        """Return the ids of samples that were picked out, None if there is no such selection."""
        ...


class NothingShared:
    """Nobody said anything."""

    def marks(self) -> MarkBook:
        return MarkBook()

    def selection(self, selection_id: str) -> list[str] | None:
        del selection_id
        return None
