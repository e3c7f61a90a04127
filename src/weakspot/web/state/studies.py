"""Studies: what they are about, whether they go on, and who may see or work on what."""

import secrets
from collections.abc import Sequence

from sqlalchemy import select
from sqlalchemy.orm import Session

from weakspot.core.errors import DataError
from weakspot.web.problems import RefusedError
from weakspot.web.roles import Person, Role
from weakspot.web.state.store import StateStore, now
from weakspot.web.state.tables import StudyRow

NO_STUDY = "There is no such study."
CLOSED = "The study is closed: nothing new can be said in it."


def storable(text: str, *, where: str) -> str:
    """Return a text that every database can hold.

    Raises:
        DataError: if it holds a NUL or half of a character.
    """
    try:
        text.encode()
    except UnicodeEncodeError:
        raise DataError("This is no text.", where=where) from None
    if "\x00" in text:
        raise DataError("A text cannot hold a NUL.", where=where)
    return text


def classes_of(study: StudyRow) -> list[str]:
    """Return the titles of a study's classes, in its order."""
    return [str(title) for title in study.classes.get("titles", [])]


def create_study(state: StateStore, *, title: str, classes: Sequence[str], instructions: str) -> StudyRow:
    """Begin a study."""
    study = StudyRow(
        study_id=secrets.token_urlsafe(12),
        title=storable(title, where="title"),
        classes={"titles": [storable(one, where="classes") for one in dict.fromkeys(classes)]},
        instructions=storable(instructions, where="instructions"),
        is_open=True,
        created=now(),
    )
    with state.writing() as rows:
        rows.add(study)
    return study


def studies_for(state: StateStore, person: Person) -> list[StudyRow]:
    """Return the studies that somebody may see, newest first."""
    asked = select(StudyRow).order_by(StudyRow.created.desc(), StudyRow.study_id)
    with state.reading() as rows:
        return [study for study in rows.scalars(asked) if may_see(person, study.study_id)]


def study_of(state: StateStore, person: Person, study_id: str) -> StudyRow:
    """Return a study.

    Raises:
        RefusedError: 404 if there is none, or none for this person: nobody learns which others there are.
    """
    with state.reading() as rows:
        return seen_study(rows, person, study_id)


def seen_study(rows: Session, person: Person, study_id: str, *, is_locked: bool = False) -> StudyRow:
    """Return a study inside a session; locked, it cannot be closed before the session ends.

    Raises:
        RefusedError: 404 as `study_of`.
    """
    if not may_see(person, study_id) or "\x00" in study_id:
        raise RefusedError(404, NO_STUDY)
    asked = select(StudyRow).where(StudyRow.study_id == study_id)
    study = rows.scalars(asked.with_for_update(read=True) if is_locked else asked).one_or_none()
    if study is None:
        raise RefusedError(404, NO_STUDY)
    return study


def open_or_close(state: StateStore, person: Person, study_id: str, *, is_open: bool) -> StudyRow:
    """Let a study go on, or end it for now; whatever was said stays.

    Raises:
        RefusedError: 404 if there is no such study.
    """
    with state.writing() as rows:
        study = seen_study(rows, person, study_id)
        study.is_open = is_open
    return study


def may_see(person: Person, study_id: str) -> bool:
    """Return whether somebody may know of a study: owners of all, others of the one that invited them."""
    if person.role is Role.OWNER:
        return True
    return person.study_id == study_id or (person.study_id is None and person.role is Role.VIEWER)


def require_class(state: StateStore, person: Person, study_id: str | None, title: str) -> None:
    """Refuse whoever has no business with a class.

    Owners work on every class, inside an existing study or outside of all. Viewers look at every class. Annotators work on the
    classes of the study that invited them, while it is open.

    Raises:
        RefusedError: 403 outside of all studies, 404 if the study or the class is not theirs, 409 if the study is closed.
    """
    if study_id is None:
        if person.role is Role.ANNOTATOR:
            raise RefusedError(403, "Annotators see their study only.")
        return
    study = study_of(state, person, study_id)
    if person.role is Role.ANNOTATOR:
        if title not in classes_of(study):
            raise RefusedError(404, "The study has no such class.")
        if not study.is_open:
            raise RefusedError(409, CLOSED)
