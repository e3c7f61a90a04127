"""People in studies: who takes part, how long and with what, and what they are done with."""

from collections.abc import Sequence

from sqlalchemy import Row, Select, delete, func, select
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session

from weakspot.app.browsing.view import View
from weakspot.web.problems import RefusedError
from weakspot.web.roles import Person, Role
from weakspot.web.state.store import StateStore, now
from weakspot.web.state.studies import CLOSED, classes_of, seen_study
from weakspot.web.state.tables import ActivityRow, FinishedRow, PersonRow, PhraseRow


class Participant(View):
    """Somebody in a study.

    Args:
        person_id: unguessable.
        name: as they called themselves.
        role: what they may do.
        joined: when they came, in UTC.
        did_tutorial: whether they went through the tutorial.
        seconds: how long they have been at work.
        n_phrases: what they said.
        n_accepted: how much of it was accepted.
        best_score: their largest Error Score; null before they said anything.
        best_held_out_score: the largest on samples that the threshold was not chosen on.
        finished: classes that they said they are done with.
    """

    person_id: str
    name: str
    role: Role
    joined: str
    did_tutorial: bool
    seconds: float
    n_phrases: int
    n_accepted: int
    best_score: float | None
    best_held_out_score: float | None
    finished: list[str]


def participants(state: StateStore, person: Person, study_id: str) -> list[Participant]:
    """Return who takes part in a study, in the order they came; owners who said something in it too.

    Raises:
        RefusedError: 404 if the study is not for this person.
    """
    with state.reading() as rows:
        seen_study(rows, person, study_id)
        said = {row.person_id: row for row in rows.execute(_phrase_figures(study_id))}
        seconds = {one: total for (one, _), total in _seconds(rows, study_id, by_class=False).items()}
        finished = _finished(rows, study_id)
        people = rows.scalars(select(PersonRow).order_by(PersonRow.created, PersonRow.person_id))
        return [
            _participant(one, said.get(one.person_id), seconds.get(one.person_id, 0.0), finished.get(one.person_id, []))
            for one in people
            if one.study_id == study_id or one.person_id in said
        ]


def seconds_by_class(state: StateStore, study_id: str) -> dict[tuple[str, str], float]:
    """Return how long everybody worked on every class of a study, by person and class."""
    with state.reading() as rows:
        found = _seconds(rows, study_id, by_class=True)
    return {(person_id, title): total for (person_id, title), total in found.items() if title is not None}


def finished_by(state: StateStore, person: Person, study_id: str) -> list[str]:
    """Return the classes of a study that somebody said they are done with."""
    with state.reading() as rows:
        return _finished(rows, study_id).get(person.person_id, [])


def finish_class(state: StateStore, person: Person, study_id: str, title: str, *, is_finished: bool) -> list[str]:
    """Write down that somebody is done with a class, or is not after all, and return all they are done with.

    Raises:
        RefusedError: 404 if the study is not theirs or has no such class, 409 if it is closed.
    """
    place = {"person_id": person.person_id, "study_id": study_id, "class_title": title}
    try:
        with state.writing() as rows:
            study = seen_study(rows, person, study_id, is_locked=True)
            if title not in classes_of(study):
                raise RefusedError(404, "The study has no such class.")
            if not study.is_open:
                raise RefusedError(409, CLOSED)
            if not is_finished:
                rows.execute(delete(FinishedRow).filter_by(**place))
            elif rows.get(FinishedRow, place) is None:
                rows.add(FinishedRow(**place, created=now()))
    except IntegrityError:
        pass  # Another window of the same person said so at the same moment.
    return finished_by(state, person, study_id)


def did_tutorial(state: StateStore, person: Person) -> bool:
    """Return whether somebody went through the tutorial."""
    with state.reading() as rows:
        found = rows.get(PersonRow, person.person_id)
        return found is not None and found.did_tutorial


def finish_tutorial(state: StateStore, person: Person) -> None:
    """Write down that somebody went through the tutorial."""
    with state.writing() as rows:
        found = rows.get(PersonRow, person.person_id)
        if found is not None:
            found.did_tutorial = True


def _phrase_figures(study_id: str) -> Select[str, int, int, float | None, float | None]:
    return (
        select(
            PhraseRow.person_id,
            func.count().label("n_phrases"),
            func.count(PhraseRow.slice_id).label("n_accepted"),
            func.max(PhraseRow.score).label("best_score"),
            func.max(PhraseRow.held_out_score).label("best_held_out_score"),
        )
        .where(PhraseRow.study_id == study_id)
        .group_by(PhraseRow.person_id)
    )


def _seconds(rows: Session, study_id: str, *, by_class: bool) -> dict[tuple[str, str | None], float]:
    place = ActivityRow.class_title if by_class else ActivityRow.study_id
    asked = select(ActivityRow.person_id, place, func.sum(ActivityRow.seconds)).where(ActivityRow.study_id == study_id)
    found = rows.execute(asked.group_by(ActivityRow.person_id, place)).all()
    return {(person_id, where): float(total) for person_id, where, total in found}


def _finished(rows: Session, study_id: str) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for row in rows.scalars(select(FinishedRow).where(FinishedRow.study_id == study_id).order_by(FinishedRow.created)):
        found.setdefault(row.person_id, []).append(row.class_title)
    return found


def _participant(
    row: PersonRow, said: Row[str, int, int, float | None, float | None] | None, seconds: float, finished: Sequence[str]
) -> Participant:
    figures = said or (row.person_id, 0, 0, None, None)
    return Participant(
        person_id=row.person_id,
        name=row.name,
        role=Role(row.role),
        joined=row.created.isoformat(timespec="seconds"),
        did_tutorial=row.did_tutorial,
        seconds=seconds,
        n_phrases=figures[1],
        n_accepted=figures[2],
        best_score=figures[3],
        best_held_out_score=figures[4],
        finished=list(finished),
    )
