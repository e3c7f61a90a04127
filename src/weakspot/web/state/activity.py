"""Time spent: short stretches that a page reports while somebody works, never more than the clock allows."""

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from weakspot.web.problems import RefusedError
from weakspot.web.roles import Person
from weakspot.web.state.store import StateStore, now
from weakspot.web.state.studies import CLOSED, classes_of, seen_study
from weakspot.web.state.tables import ActivityRow, PersonRow, PhraseRow

LONGEST_STRETCH = 60.0


def active_seconds(rows: Session, person_id: str, study_id: str | None) -> float:
    """Return how long somebody has been at work in a study."""
    place = ActivityRow.study_id.is_(None) if study_id is None else ActivityRow.study_id == study_id
    asked = select(func.coalesce(func.sum(ActivityRow.seconds), 0.0)).where(ActivityRow.person_id == person_id, place)
    return float(rows.scalar(asked) or 0.0)


def report_activity(state: StateStore, person: Person, study_id: str, *, seconds: float, class_title: str | None = None) -> float:
    """Write down that somebody was at work, and return how long they have been at work in this study in all.

    What is counted is at most what the clock says since their last report (or since they came), whatever the page claims and from
    however many windows.

    Raises:
        RefusedError: 404 if the study is not theirs or has no such class, 409 if it is closed.
    """
    with state.writing() as rows:
        study = seen_study(rows, person, study_id, is_locked=True)
        if class_title is not None and class_title not in classes_of(study):
            raise RefusedError(404, "The study has no such class.")
        if not study.is_open:
            raise RefusedError(409, CLOSED)
        # The lock on the person makes two windows of the same person report one after the other.
        came = rows.scalars(select(PersonRow.created).where(PersonRow.person_id == person.person_id).with_for_update()).one()
        last = rows.scalar(select(func.max(ActivityRow.created)).where(ActivityRow.person_id == person.person_id))
        present = now()
        counted = max(0.0, min(seconds, LONGEST_STRETCH, (present - (last or came)).total_seconds()))
        stretch = ActivityRow(
            person_id=person.person_id, study_id=study_id, class_title=class_title, seconds=counted, created=present
        )
        rows.add(stretch)
        rows.flush()
        return active_seconds(rows, person.person_id, study_id)


def own_figures(state: StateStore, person: Person, study_id: str) -> tuple[float, int]:
    """Return how long somebody has been at work in a study, and how much they said."""
    asked = select(func.count()).where(PhraseRow.person_id == person.person_id, PhraseRow.study_id == study_id)
    with state.reading() as rows:
        return active_seconds(rows, person.person_id, study_id), int(rows.scalar(asked) or 0)
