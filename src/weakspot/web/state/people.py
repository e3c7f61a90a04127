"""People in studies: who takes part, how long and with what, and what they are done with. Time is never more than the clock allows."""

from collections.abc import Sequence

from sqlalchemy import Row, Select, delete, func, select
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session

from weakspot.web.problems import RefusedError
from weakspot.web.roles import Person, Role
from weakspot.web.services.view import View
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
        n_phrases: how many they submitted.
        n_accepted: how much of it was accepted.
        best_score: their largest Error Score; null before they submitted one.
        best_held_out_score: the largest on samples that the threshold was not chosen on.
        finished: classes that they are done with.
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
    """Return who takes part in a study, in the order they came; owners with a phrase in it too.

    Raises:
        RefusedError: 404 if the study is not for this person.
    """
    with state.reading() as rows:
        seen_study(rows, person, study_id)
        submitted = {row.person_id: row for row in rows.execute(_phrase_figures(study_id))}
        seconds = {
            one: total for (one, _), total in _seconds(rows, study_id, by_class=False).items()
        }
        finished = _finished(rows, study_id)
        people = rows.scalars(select(PersonRow).order_by(PersonRow.created, PersonRow.person_id))
        return [
            _participant(
                one,
                submitted.get(one.person_id),
                seconds.get(one.person_id, 0.0),
                finished.get(one.person_id, []),
            )
            for one in people
            if one.study_id == study_id or one.person_id in submitted
        ]


def seconds_by_class(state: StateStore, study_id: str) -> dict[tuple[str, str], float]:
    with state.reading() as rows:
        found = _seconds(rows, study_id, by_class=True)
    return {
        (person_id, title): total
        for (person_id, title), total in found.items()
        if title is not None
    }


def stretches(
    state: StateStore, person: Person, study_id: str
) -> list[tuple[str, str, float, str]]:
    """Return every stretch of time at work in a study, oldest first: name, class, seconds, when it ended.

    Raises:
        RefusedError: 404 if the study is not theirs.
    """
    asked = (
        select(PersonRow.name, ActivityRow)
        .join(PersonRow, PersonRow.person_id == ActivityRow.person_id)
        .where(ActivityRow.study_id == study_id)
        .order_by(ActivityRow.activity_id)
    )
    with state.reading() as rows:
        seen_study(rows, person, study_id)
        return [
            (name, row.class_title or "", row.seconds, row.created.isoformat(timespec="seconds"))
            for name, row in rows.execute(asked).all()
        ]


def finished_by(state: StateStore, person: Person, study_id: str) -> list[str]:
    with state.reading() as rows:
        return _finished(rows, study_id).get(person.person_id, [])


def finish_class(
    state: StateStore, person: Person, study_id: str, title: str, *, is_finished: bool
) -> list[str]:
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
        pass  # Another window of the same person did so at the same moment.
    return finished_by(state, person, study_id)


def did_tutorial(state: StateStore, person: Person) -> bool:
    with state.reading() as rows:
        found = rows.get(PersonRow, person.person_id)
        return found is not None and found.did_tutorial


def finish_tutorial(state: StateStore, person: Person) -> None:
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


def _seconds(
    rows: Session, study_id: str, *, by_class: bool
) -> dict[tuple[str, str | None], float]:
    place = ActivityRow.class_title if by_class else ActivityRow.study_id
    asked = select(ActivityRow.person_id, place, func.sum(ActivityRow.seconds)).where(
        ActivityRow.study_id == study_id
    )
    found = rows.execute(asked.group_by(ActivityRow.person_id, place)).all()
    return {(person_id, where): float(total) for person_id, where, total in found}


def _finished(rows: Session, study_id: str) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for row in rows.scalars(
        select(FinishedRow).where(FinishedRow.study_id == study_id).order_by(FinishedRow.created)
    ):
        found.setdefault(row.person_id, []).append(row.class_title)
    return found


def _participant(
    row: PersonRow,
    submitted: Row[str, int, int, float | None, float | None] | None,
    seconds: float,
    finished: Sequence[str],
) -> Participant:
    figures = submitted or (row.person_id, 0, 0, None, None)
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


LONGEST_STRETCH = 60.0


def active_seconds(rows: Session, person_id: str, study_id: str | None) -> float:
    place = ActivityRow.study_id.is_(None) if study_id is None else ActivityRow.study_id == study_id
    asked = select(func.coalesce(func.sum(ActivityRow.seconds), 0.0)).where(
        ActivityRow.person_id == person_id, place
    )
    return float(rows.scalar(asked) or 0.0)


def report_activity(
    state: StateStore,
    person: Person,
    study_id: str,
    *,
    seconds: float,
    class_title: str | None = None,
) -> float:
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
        came = rows.scalars(
            select(PersonRow.created)
            .where(PersonRow.person_id == person.person_id)
            .with_for_update()
        ).one()
        last = rows.scalar(
            select(func.max(ActivityRow.created)).where(ActivityRow.person_id == person.person_id)
        )
        present = now()
        counted = max(
            0.0, min(seconds, LONGEST_STRETCH, (present - (last or came)).total_seconds())
        )
        stretch = ActivityRow(
            person_id=person.person_id,
            study_id=study_id,
            class_title=class_title,
            seconds=counted,
            created=present,
        )
        rows.add(stretch)
        rows.flush()
        return active_seconds(rows, person.person_id, study_id)


def own_figures(state: StateStore, person: Person, study_id: str) -> tuple[float, int]:
    asked = select(func.count()).where(
        PhraseRow.person_id == person.person_id, PhraseRow.study_id == study_id
    )
    with state.reading() as rows:
        return active_seconds(rows, person.person_id, study_id), int(rows.scalar(asked) or 0)
