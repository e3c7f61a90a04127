"""Changes: who did what and when, numbered; a change that was made without knowing of another of the same thing is refused."""

from collections.abc import Mapping
from typing import Any

from pydantic import Field
from sqlalchemy import func, select, text
from sqlalchemy.orm import Session

from weakspot.web.problems import RefusedError
from weakspot.web.services.view import Moment, View
from weakspot.web.state.store import ChangeRow, JobRow, StateStore, now

LOCK = 7_319_604_422
NOT_UNDONE = ("undo",)


class ChangeView(View):
    """Something that was changed.

    Args:
        change_id: its number.
        kind: what was changed.
        subject: the thing that was changed.
        sentence: in words.
        by: who did it.
        time: when.
        undone_by: the number of the change that undid it.
    """

    change_id: int
    kind: str
    subject: str
    sentence: str
    by: str
    time: Moment
    undone_by: int | None


class NewChange(View):
    """A change to be written down.

    Args:
        kind: what is changed.
        subject: the thing that is changed; two people must not change it at once.
        sentence: in words.
        by: who does it.
        data: what is needed to undo it.
    """

    kind: str
    subject: str
    sentence: str
    by: str
    data: dict[str, Any] = Field(default_factory=dict)


def add_change(rows: Session, change: NewChange) -> ChangeRow:
    """Write down a change inside a session; of several sessions one does so at a time, so that numbers are in the order of writing."""
    if rows.get_bind().dialect.name == "postgresql":
        rows.execute(text("SELECT pg_advisory_xact_lock(:lock)"), {"lock": LOCK})
    row = ChangeRow(**change.model_dump(), created=now())
    rows.add(row)
    rows.flush()
    return row


def keep_change(state: StateStore, change: NewChange) -> int:
    """Write down a change and return its number."""
    with state.writing() as rows:
        return add_change(rows, change).change_id


def version_of(state: StateStore) -> int:
    """Return the number of the last change, 0 if there is none."""
    with state.reading() as rows:
        return rows.scalar(select(func.max(ChangeRow.change_id))) or 0


def count_finished_jobs(state: StateStore) -> int:
    with state.reading() as rows:
        asked = select(func.count()).where(JobRow.finished.is_not(None))
        return rows.scalar(asked) or 0


def changes_of(state: StateStore, *, before: int | None, limit: int) -> list[ChangeView]:
    """Return changes, newest first, from a number on downwards."""
    asked = select(ChangeRow).order_by(ChangeRow.change_id.desc()).limit(limit)
    if before is not None:
        asked = asked.where(ChangeRow.change_id < before)
    with state.reading() as rows:
        return [view_of(row) for row in rows.scalars(asked)]


def change_of(state: StateStore, change_id: int) -> tuple[ChangeView, Mapping[str, Any]]:
    """Return a change and what is needed to undo it.

    Raises:
        RefusedError: 404 if there is none, 409 if it was undone.
    """
    with state.reading() as rows:
        row = rows.get(ChangeRow, change_id)
        if row is None:
            raise RefusedError(404, "There is no such change.")
        _refuse_undone(rows, row)
        return view_of(row), dict(row.data)


def mark_undone(rows: Session, change_id: int, undone_by: int) -> None:
    """Write down by which change another was undone.

    Raises:
        RefusedError: 409 if it was undone before.
    """
    row = rows.get(ChangeRow, change_id)
    if row is not None:
        _refuse_undone(rows, row)
        row.undone_by = undone_by


def _refuse_undone(rows: Session, row: ChangeRow) -> None:
    if row.undone_by is not None:
        by = rows.get(ChangeRow, row.undone_by)
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
    if seen is None:
        return
    asked = (
        select(ChangeRow)
        .where(ChangeRow.subject == subject, ChangeRow.change_id > seen)
        .order_by(ChangeRow.change_id.desc())
    )
    with state.reading() as rows:
        row = rows.scalars(asked).first()
        if row is not None:
            raise conflict(row)


def conflict(row: ChangeRow) -> RefusedError:
    """Return the refusal of whoever did not know of a change."""
    return RefusedError(
        409,
        f"{row.by} was faster: {row.sentence}",
        fix="Nothing of yours is lost: look at it, and press again if you still want yours.",
    )


def view_of(row: ChangeRow) -> ChangeView:
    return ChangeView(
        change_id=row.change_id,
        kind=row.kind,
        subject=row.subject,
        sentence=row.sentence,
        by=row.by,
        time=row.created,
        undone_by=row.undone_by,
    )
