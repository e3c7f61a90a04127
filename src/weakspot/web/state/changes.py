"""What people changed: who did what and when, numbered; marks on samples, and samples that were picked out.

A change that was made without knowing of another of the same thing is refused. Marks from a file come back in one change.
"""

import hashlib
import threading
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

from pydantic import Field
from sqlalchemy import Connection, delete, func, insert, select, update
from sqlalchemy import text as sql

from weakspot.core.dataset import Task
from weakspot.web.problems import RefusedError
from weakspot.web.services.images import visible_samples
from weakspot.web.services.marks import MarkTool, read_marks
from weakspot.web.services.view import Moment, View
from weakspot.web.services.workspace import (
    ALONE,
    Mark,
    MarkBook,
    MarkKind,
    NewMark,
    Shared,
    Workspace,
)
from weakspot.web.state.store import CHANGES, JOBS, SELECTIONS, Entry, StateStore, entry_of, now
from weakspot.web.state.store import MARKS as TABLE
from weakspot.web.state.studies import storable

LOCK = 7_319_604_422
UNDO = "undo"


class Change(View):
    """Something that somebody changes or changed.

    Args:
        kind: what is changed.
        subject: the thing that is changed; two people must not change it at once.
        sentence: in words.
        by: who does it.
        data: what is needed to undo it.
        change_id: its number; 0 until it is written down.
        created: when; empty until it is written down.
        undone_by: the number of the change that undid it.
    """

    kind: str
    subject: str
    sentence: str
    by: str
    data: dict[str, Any] = Field(default_factory=dict)
    change_id: int = 0
    created: Moment = ""
    undone_by: int | None = None


def add_change(rows: Connection, change: Change) -> int:
    """Write down a change and return its number; one at a time does so, so that numbers are in the order of writing."""
    if rows.dialect.name == "postgresql":
        rows.execute(sql("SELECT pg_advisory_xact_lock(:lock)"), {"lock": LOCK})
    kept = change.model_dump(include={"kind", "subject", "sentence", "by", "data"})
    added = insert(CHANGES).values(**kept, created=now()).returning(CHANGES.c.change_id)
    number: int = rows.execute(added).scalar_one()
    return number


def keep_change(state: StateStore, change: Change) -> int:
    """Write down a change and return its number."""
    with state.writing() as rows:
        return add_change(rows, change)


def version_of(state: StateStore) -> int:
    """Return the number of the last change, 0 if there is none."""
    with state.reading() as rows:
        return rows.scalar(select(func.max(CHANGES.c.change_id))) or 0


def count_finished_jobs(state: StateStore) -> int:
    with state.reading() as rows:
        return rows.scalar(select(func.count()).where(JOBS.c.finished.is_not(None))) or 0


def changes_of(state: StateStore, *, before: int | None, limit: int) -> list[Change]:
    """Return changes, newest first, from a number on downwards."""
    asked = select(CHANGES).order_by(CHANGES.c.change_id.desc()).limit(limit)
    if before is not None:
        asked = asked.where(CHANGES.c.change_id < before)
    with state.reading() as rows:
        return [Change.model_validate(entry) for entry in rows.execute(asked)]


def change_of(state: StateStore, change_id: int) -> Change:
    """Return a change that can still be undone.

    Raises:
        RefusedError: 404 if there is none, 409 if it was undone.
    """
    with state.reading() as rows:
        change = find_change(rows, change_id)
        if change is None:
            raise RefusedError(404, "There is no such change.")
        _refuse_undone(rows, change)
        return change


def find_change(rows: Connection, change_id: int) -> Change | None:
    """Return a change, None if there is none of this number."""
    entry = entry_of(rows, CHANGES, change_id=change_id)
    return None if entry is None else Change.model_validate(entry)


def mark_undone(rows: Connection, change_id: int, undone_by: int) -> None:
    """Write down by which change another was undone.

    Raises:
        RefusedError: 409 if it was undone before.
    """
    change = find_change(rows, change_id)
    if change is not None:
        _refuse_undone(rows, change)
        rows.execute(update(CHANGES).filter_by(change_id=change_id).values(undone_by=undone_by))


def _refuse_undone(rows: Connection, change: Change) -> None:
    if change.undone_by is not None:
        by = find_change(rows, change.undone_by)
        raise RefusedError(409, f"{by.by if by else 'Somebody'} has undone this already.")


def refuse_stale(state: StateStore, subject: str, seen: int | None) -> None:
    """Refuse to change something that was changed after it was last seen.

    Args:
        state: the shared state.
        subject: what is to be changed.
        seen: number of the last change that the person knew of; None if that is not told, which refuses nothing.

    Raises:
        RefusedError: 409 with what was done meanwhile.
    """
    if seen is not None and (newer := newest_change([subject], after=seen, state=state)):
        raise conflict(newer)


def newest_change(
    subjects: Sequence[str], *, after: int, state: StateStore, is_lasting: bool = False
) -> Change | None:
    """Return the newest change of some things after a number, None if there is none.

    Args:
        subjects: the things.
        after: number of an earlier change.
        state: the shared state.
        is_lasting: pass over changes that were undone, and those that undid something.
    """
    asked = select(CHANGES).where(CHANGES.c.subject.in_(subjects), CHANGES.c.change_id > after)
    if is_lasting:
        asked = asked.where(CHANGES.c.undone_by.is_(None), CHANGES.c.kind != UNDO)
    with state.reading() as rows:
        entry = rows.execute(asked.order_by(CHANGES.c.change_id.desc()).limit(1)).one_or_none()
        return None if entry is None else Change.model_validate(entry)


def conflict(change: Change) -> RefusedError:
    """Return the refusal for somebody who did not know of a change."""
    return RefusedError(
        409,
        f"{change.by} was faster: {change.sentence}",
        fix="Nothing of yours is lost: look at it, and press again if you still want yours.",
    )


MARKS = "marks"
AT_ONCE = 5000
Value = TypeVar("Value", int, str)
MAX_SELECTIONS = 1000


class SharedState(Shared):
    """Marks and selections as queries of images ask for them; all marks are kept in memory until one changes.

    Args:
        state: where they are.
    """

    def __init__(self, state: StateStore) -> None:
        self._state = state
        self._guard = threading.Lock()
        self._book = MarkBook(version=-1)

    def marks(self) -> MarkBook:
        with self._state.reading() as rows:
            newest = select(func.max(CHANGES.c.change_id)).where(CHANGES.c.subject == MARKS)
            version = rows.scalar(newest) or 0
            with self._guard:
                if self._book.version != version:
                    self._book = MarkBook(version=version, by_sample=_read(rows))
                return self._book

    def selection(self, selection_id: str) -> list[str] | None:
        with self._state.reading() as rows:
            name = storable(selection_id, where="selection")
            entry = entry_of(rows, SELECTIONS, selection_id=name)
            return None if entry is None else [str(one) for one in entry.samples.get("ids", [])]


def keep_selection(state: StateStore, sample_ids: Sequence[str]) -> str:
    """Keep samples that were picked out, and return under which name; the same samples have the same name."""
    ids = sorted(set(sample_ids))
    name = hashlib.sha256("\n".join(ids).encode()).hexdigest()[:16]
    with state.writing() as rows:
        if entry_of(rows, SELECTIONS, selection_id=name) is None:
            fields = {"selection_id": name, "samples": {"ids": ids}, "created": now()}
            rows.execute(insert(SELECTIONS).values(**fields))
            newest = select(SELECTIONS.c.selection_id).order_by(SELECTIONS.c.created.desc())
            kept = list(rows.scalars(newest.limit(MAX_SELECTIONS)))
            rows.execute(delete(SELECTIONS).where(SELECTIONS.c.selection_id.not_in(kept)))
    return name


def mark_samples(
    state: StateStore,
    sample_ids: Sequence[str],
    mark: NewMark,
    *,
    change: Change,
    seen: int | None,
) -> int:
    """Say something of samples, in one step, and return the number of the change.

    What can be said once takes the place of what was said before; saying the same twice changes nothing.

    Args:
        state: the shared state.
        sample_ids: of which samples.
        mark: what is said.
        change: how it is written down.
        seen: number of the last change that the person knew of; marks that somebody made since are not replaced.

    Raises:
        RefusedError: 409 if somebody said something else meanwhile.
    """
    with state.writing() as rows:
        number = add_change(rows, change)
        add_marks(rows, sample_ids, mark, number=number, seen=seen)
        return number


def add_marks(
    rows: Connection,
    sample_ids: Sequence[str],
    mark: NewMark,
    *,
    number: int,
    seen: int | None = None,
) -> None:
    """Say something of samples inside a transaction, as part of a change that was written down."""
    said = list(_marks_of(rows, sample_ids))
    has_it = {one.sample_id for one in said if _is_same(one, mark)}
    if mark.kind in ALONE:
        replaced = [one for one in said if one.kind in ALONE and not _is_same(one, mark)]
        _refuse_newer(rows, replaced, seen)
        gone = [one.mark_id for one in replaced if one.sample_id not in has_it]
        for some in _pieces(gone):
            rows.execute(update(TABLE).where(TABLE.c.mark_id.in_(some)).values(removed_by=number))
    said_now = {"kind": mark.kind.value, "text": storable(mark.text, where="text")}
    added = [
        {"sample_id": one, "labels": {"names": list(mark.labels)}, "change_id": number, **said_now}
        for one in dict.fromkeys(sample_ids)
        if one not in has_it
    ]
    if added:
        rows.execute(insert(TABLE), added)


def take_back(
    state: StateStore,
    sample_ids: Sequence[str],
    *,
    kind: MarkKind | None,
    text: str | None,
    change: Change,
) -> tuple[int, int]:
    """Take marks of samples back: all, or of one kind, or one tag; return the number of the change and how many there were."""
    meant = {"kind": kind and kind.value, "text": text}
    taken = update(TABLE).filter_by(**{name: one for name, one in meant.items() if one is not None})
    with state.writing() as rows:
        number = add_change(rows, change)
        n_taken = 0
        for some in _pieces(sample_ids):
            of_these = taken.where(TABLE.c.sample_id.in_(some), TABLE.c.removed_by.is_(None))
            n_taken += rows.execute(of_these.values(removed_by=number)).rowcount
        return number, n_taken


def undo_marks(state: StateStore, change_id: int, *, change: Change) -> int:
    """Undo a change of marks: what it said is taken back, what it took back is said again.

    Raises:
        RefusedError: 409 if somebody changed these marks since.
    """
    made, taken = TABLE.c.change_id == change_id, TABLE.c.removed_by == change_id
    with state.writing() as rows:
        number = add_change(rows, change)
        _refuse_changed(rows, rows.scalar(select(func.max(TABLE.c.removed_by)).where(made)))
        rows.execute(update(TABLE).where(made).values(removed_by=number))
        _refuse_taken(rows, rows.execute(select(TABLE).where(taken)).all())
        rows.execute(update(TABLE).where(taken).values(removed_by=None))
        mark_undone(rows, change_id, number)
        return number


def _refuse_taken(rows: Connection, taken: Sequence[Entry]) -> None:
    """Refuse to say again what a sample can have once, and has."""
    alone = [one.sample_id for one in taken if one.kind in ALONE]
    for newer in _marks_of(rows, alone):
        if newer.kind in ALONE:
            _refuse_changed(rows, newer.change_id)


def _refuse_changed(rows: Connection, change_id: int | None) -> None:
    newer = None if change_id is None else find_change(rows, change_id)
    if newer is not None:
        raise RefusedError(
            409,
            f"{newer.by} changed the same marks since: {newer.sentence}",
            fix="Undo that first.",
        )


def _refuse_newer(rows: Connection, replaced: Sequence[Entry], seen: int | None) -> None:
    newer = [one.change_id for one in replaced if seen is not None and one.change_id > seen]
    found = find_change(rows, max(newer)) if newer else None
    if found is not None:
        raise conflict(found)


def _is_same(one: Entry, mark: NewMark) -> bool:
    return (one.kind, one.text) == (mark.kind.value, mark.text) and sorted(
        one.labels.get("names", [])
    ) == sorted(mark.labels)


def _pieces(values: Sequence[Value]) -> Iterator[list[Value]]:
    """Yield values, each once, in lists that a database takes at once."""
    ones = list(dict.fromkeys(values))
    return (ones[start : start + AT_ONCE] for start in range(0, len(ones), AT_ONCE))


def _marks_of(rows: Connection, sample_ids: Sequence[str]) -> Iterator[Entry]:
    hold = select(TABLE).where(TABLE.c.removed_by.is_(None)).order_by(TABLE.c.mark_id)
    for some in _pieces(sample_ids):
        yield from rows.execute(hold.where(TABLE.c.sample_id.in_(some))).all()


def _read(rows: Connection) -> dict[str, tuple[Mark, ...]]:
    asked = (
        select(TABLE, CHANGES.c.by, CHANGES.c.created)
        .join(CHANGES, CHANGES.c.change_id == TABLE.c.change_id)
        .where(TABLE.c.removed_by.is_(None))
        .order_by(TABLE.c.mark_id)
    )
    found: dict[str, list[Mark]] = {}
    for one in rows.execute(asked):
        mark = Mark(
            kind=MarkKind(one.kind),
            labels=[str(name) for name in one.labels.get("names", [])],
            text=one.text,
            by=one.by,
            time=one.created,
        )
        found.setdefault(one.sample_id, []).append(mark)
    return {sample_id: tuple(marks) for sample_id, marks in found.items()}


class ReadBack(View):
    """What a file said.

    Args:
        n_marked: marks that were made of it.
        n_same: lines that give a sample the label that it has.
        n_unknown: lines about samples or classes that are not there.
        n_unseen: lines about samples that nobody may look at; they are left out.
    """

    n_marked: int
    n_same: int
    n_unknown: int
    n_unseen: int


def read_back(
    workspace: Workspace, state: StateStore, tool: MarkTool, source: Path, *, by: str
) -> tuple[ReadBack, int | None]:
    """Make marks of what a file says; return what it said, and the number of the change, None if nothing was marked."""
    dataset = workspace.samples.dataset
    marks, n_same, n_unknown = read_marks(dataset, tool, source)
    seen = visible_samples(workspace)
    is_single = dataset.task is Task.SINGLE_LABEL
    fits = [(row, mark) for row, mark in marks if not (is_single and len(mark.labels) > 1)]
    visible = [(row, mark) for row, mark in fits if seen.place_of(row) is not None]
    told = ReadBack(
        n_marked=len(visible),
        n_same=n_same,
        n_unknown=n_unknown + len(marks) - len(fits),
        n_unseen=len(fits) - len(visible),
    )
    if not visible:
        return told, None
    change = Change(
        kind=MARKS,
        subject=MARKS,
        sentence=f"Read {len(visible)} marks from a file of {tool}",
        by=by,
    )
    ids = dict(zip(seen.rows.tolist(), dataset.sample_ids(seen.rows), strict=True))
    with state.writing() as rows:
        number = add_change(rows, change)
        for mark, sample_ids in _by_mark(visible, ids):
            add_marks(rows, sample_ids, mark, number=number)
    return told, number


def _by_mark(
    marks: Sequence[tuple[int, NewMark]], ids: Mapping[int, str]
) -> list[tuple[NewMark, list[str]]]:
    """Return samples by what is said of them; of what can be said once, the last line counts."""
    last = {
        (row, "" if mark.kind in ALONE else f"{mark.kind} {mark.text}"): mark for row, mark in marks
    }
    found: dict[str, tuple[NewMark, list[str]]] = {}
    for (row, _), mark in last.items():
        found.setdefault(mark.model_dump_json(), (mark, []))[1].append(ids[row])
    return list(found.values())
