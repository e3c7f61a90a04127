"""Changes: who did what and when, numbered; a change that was made without knowing of another of the same thing is refused."""

from collections.abc import Sequence
from typing import Any

from pydantic import Field
from sqlalchemy import Connection, func, insert, select, text, update

from weakspot.web.problems import RefusedError
from weakspot.web.services.view import Moment, View
from weakspot.web.state.store import CHANGES, JOBS, StateStore, entry_of, now

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
        rows.execute(text("SELECT pg_advisory_xact_lock(:lock)"), {"lock": LOCK})
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
