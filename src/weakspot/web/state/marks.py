"""Marks on samples, and samples that were picked out, in the shared state; marks from a file come back in one change."""

import hashlib
import threading
from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path

from sqlalchemy import Select, delete, func, select
from sqlalchemy.orm import Session

from weakspot.core.dataset import Task
from weakspot.web.problems import RefusedError
from weakspot.web.services.images import visible_samples
from weakspot.web.services.marks import MarkTool, ReadMark, read_marks
from weakspot.web.services.view import View
from weakspot.web.services.workspace import (
    ALONE,
    Mark,
    MarkBook,
    MarkKind,
    NewMark,
    Shared,
    Workspace,
)
from weakspot.web.state.changes import NewChange, add_change, conflict, mark_undone
from weakspot.web.state.store import ChangeRow, MarkRow, SelectionRow, StateStore, now
from weakspot.web.state.studies import storable

MARKS = "marks"
AT_ONCE = 5000
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
            newest = select(func.max(ChangeRow.change_id)).where(ChangeRow.subject == MARKS)
            version = rows.scalar(newest) or 0
            with self._guard:
                if self._book.version != version:
                    self._book = MarkBook(version=version, by_sample=_read(rows))
                return self._book

    def selection(self, selection_id: str) -> list[str] | None:
        with self._state.reading() as rows:
            row = rows.get(SelectionRow, storable(selection_id, where="selection"))
            return None if row is None else [str(one) for one in row.samples.get("ids", [])]


def keep_selection(state: StateStore, sample_ids: Sequence[str]) -> str:
    """Keep samples that were picked out, and return under which name; the same samples have the same name."""
    ids = sorted(set(sample_ids))
    name = hashlib.sha256("\n".join(ids).encode()).hexdigest()[:16]
    with state.writing() as rows:
        if rows.get(SelectionRow, name) is None:
            rows.add(SelectionRow(selection_id=name, samples={"ids": ids}, created=now()))
            rows.flush()
            newest = select(SelectionRow.selection_id).order_by(SelectionRow.created.desc())
            kept = list(rows.scalars(newest.limit(MAX_SELECTIONS)))
            rows.execute(delete(SelectionRow).where(SelectionRow.selection_id.not_in(kept)))
    return name


def mark_samples(
    state: StateStore,
    sample_ids: Sequence[str],
    mark: NewMark,
    *,
    change: NewChange,
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
        number = add_change(rows, change).change_id
        add_marks(rows, sample_ids, mark, number=number, seen=seen)
        return number


def add_marks(
    rows: Session, sample_ids: Sequence[str], mark: NewMark, *, number: int, seen: int | None = None
) -> None:
    """Say something of samples inside a session, as part of a change that was written down."""
    is_alone = mark.kind in ALONE
    said = list(_rows_of(rows, sample_ids))
    if is_alone and seen is not None:
        _refuse_newer(rows, said, mark, seen)
    has_it = {row.sample_id for row in said if _is_same(row, mark)}
    for row in said:
        if is_alone and row.kind in ALONE and row.sample_id not in has_it:
            row.removed_by = number
    fields = {"kind": mark.kind.value, "text": storable(mark.text, where="text")}
    rows.add_all(
        MarkRow(sample_id=one, labels={"names": list(mark.labels)}, change_id=number, **fields)
        for one in dict.fromkeys(sample_ids)
        if one not in has_it
    )


def take_back(
    state: StateStore,
    sample_ids: Sequence[str],
    *,
    kind: MarkKind | None,
    text: str | None,
    change: NewChange,
) -> tuple[int, int]:
    """Take marks of samples back: all, or of one kind, or one tag; return the number of the change and how many there were."""
    with state.writing() as rows:
        number = add_change(rows, change).change_id
        meant = [
            row
            for row in _rows_of(rows, sample_ids)
            if (kind is None or row.kind == kind.value) and (text is None or row.text == text)
        ]
        for row in meant:
            row.removed_by = number
        return number, len(meant)


def undo_marks(state: StateStore, change_id: int, *, change: NewChange) -> int:
    """Undo a change of marks: what it said is taken back, what it took back is said again.

    Raises:
        RefusedError: 409 if somebody changed these marks since.
    """
    with state.writing() as rows:
        number = add_change(rows, change).change_id
        made = list(rows.scalars(select(MarkRow).where(MarkRow.change_id == change_id)))
        taken = list(rows.scalars(select(MarkRow).where(MarkRow.removed_by == change_id)))
        _refuse_lost(rows, made)
        for row in made:
            row.removed_by = number
        rows.flush()
        _refuse_taken(rows, taken)
        for row in taken:
            row.removed_by = None
        mark_undone(rows, change_id, number)
        return number


def _refuse_lost(rows: Session, made: Sequence[MarkRow]) -> None:
    lost = max((row.removed_by for row in made if row.removed_by is not None), default=None)
    newer = None if lost is None else rows.get(ChangeRow, lost)
    if newer is not None:
        raise _changed_since(newer)


def _refuse_taken(rows: Session, taken: Sequence[MarkRow]) -> None:
    """Refuse to say again what a sample can have once, and has."""
    alone = [row.sample_id for row in taken if row.kind in ALONE]
    for row in _rows_of(rows, alone):
        newer = rows.get(ChangeRow, row.change_id)
        if row.kind in ALONE and newer is not None:
            raise _changed_since(newer)


def _changed_since(row: ChangeRow) -> RefusedError:
    return RefusedError(
        409, f"{row.by} changed the same marks since: {row.sentence}", fix="Undo that first."
    )


def _refuse_newer(rows: Session, said: Sequence[MarkRow], mark: NewMark, seen: int) -> None:
    newer = [
        row.change_id
        for row in said
        if row.kind in ALONE and row.change_id > seen and not _is_same(row, mark)
    ]
    found = rows.get(ChangeRow, max(newer)) if newer else None
    if found is not None:
        raise conflict(found)


def _is_same(row: MarkRow, mark: NewMark) -> bool:
    return (row.kind, row.text) == (mark.kind.value, mark.text) and sorted(
        row.labels.get("names", [])
    ) == sorted(mark.labels)


def _that_hold() -> Select[MarkRow]:
    return select(MarkRow).where(MarkRow.removed_by.is_(None)).order_by(MarkRow.mark_id)


def _rows_of(rows: Session, sample_ids: Sequence[str]) -> Iterator[MarkRow]:
    ids = list(dict.fromkeys(sample_ids))
    for start in range(0, len(ids), AT_ONCE):
        some = ids[start : start + AT_ONCE]
        yield from list(rows.scalars(_that_hold().where(MarkRow.sample_id.in_(some))))


def _read(rows: Session) -> dict[str, tuple[Mark, ...]]:
    asked = (
        select(MarkRow, ChangeRow.by, ChangeRow.created)
        .join(ChangeRow, ChangeRow.change_id == MarkRow.change_id)
        .where(MarkRow.removed_by.is_(None))
        .order_by(MarkRow.mark_id)
    )
    found: dict[str, list[Mark]] = {}
    for row, by, created in rows.execute(asked):
        mark = Mark(
            kind=MarkKind(row.kind),
            labels=[str(name) for name in row.labels.get("names", [])],
            text=row.text,
            by=by,
            time=created,
        )
        found.setdefault(row.sample_id, []).append(mark)
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
    found, seen = read_marks(dataset, tool, source), visible_samples(workspace)
    is_single = dataset.task is Task.SINGLE_LABEL
    fits = [one for one in found.marks if not (is_single and len(one.labels) > 1)]
    visible = [one for one in fits if seen.place_of(one.row) is not None]
    told = ReadBack(
        n_marked=len(visible),
        n_same=found.n_same,
        n_unknown=found.n_unknown + len(found.marks) - len(fits),
        n_unseen=len(fits) - len(visible),
    )
    if not visible:
        return told, None
    change = NewChange(
        kind=MARKS,
        subject=MARKS,
        sentence=f"Read {len(visible)} marks from a file of {tool}",
        by=by,
    )
    ids = dict(zip(seen.rows.tolist(), dataset.sample_ids(seen.rows), strict=True))
    with state.writing() as rows:
        number = add_change(rows, change).change_id
        for mark, sample_ids in _by_mark(visible, ids).items():
            kind, labels, text = mark
            add_marks(
                rows, sample_ids, NewMark(kind=kind, labels=list(labels), text=text), number=number
            )
    return told, number


def _by_mark(
    marks: list[ReadMark], ids: dict[int, str]
) -> dict[tuple[MarkKind, tuple[str, ...], str], list[str]]:
    """Return samples by what is said of them; of what can be said once, the last line counts."""
    last = {(one.row, "" if one.kind in ALONE else f"{one.kind} {one.text}"): one for one in marks}
    found: dict[tuple[MarkKind, tuple[str, ...], str], list[str]] = defaultdict(list)
    for one in last.values():
        found[one.kind, one.labels, one.text].append(ids[one.row])
    return found
