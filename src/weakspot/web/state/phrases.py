"""Phrases: everything that people wrote about classes, kept for ever with its figures."""

import math
import secrets

from sqlalchemy import select, update

from weakspot.web.problems import RefusedError
from weakspot.web.roles import Person, Role
from weakspot.web.services.studies.table import KeptPhrase, PhraseFigures
from weakspot.web.state.people import active_seconds
from weakspot.web.state.store import StateStore, now
from weakspot.web.state.studies import CLOSED, seen_study, storable
from weakspot.web.state.tables import PersonRow, PhraseRow


class PhraseView(KeptPhrase):
    """A phrase of the history of a class.

    Args:
        phrase_id: unguessable.
        slice_id: the slice that it became when it was accepted.
        by: whose it is.
    """

    phrase_id: str
    slice_id: str | None
    by: str


def keep_phrase(
    state: StateStore, person: Person, phrase: PhraseFigures, *, study_id: str | None
) -> PhraseView:
    """Write down a phrase; when this returns it is on disk. A figure that is no finite number is kept as null.

    Raises:
        RefusedError: 404 if the study is not theirs, 409 if it is closed.
        DataError: if a text cannot be kept.
    """
    row = PhraseRow(
        phrase_id=secrets.token_urlsafe(12), person_id=person.person_id, study_id=study_id
    )
    for name, value in phrase:
        is_text = isinstance(value, str)
        setattr(row, name, storable(value, where=name) if is_text else _finite(value))
    with state.writing() as rows:
        if study_id is not None and not seen_study(rows, person, study_id, is_locked=True).is_open:
            raise RefusedError(409, CLOSED)
        row.seconds = active_seconds(rows, person.person_id, study_id)
        row.created = now()
        rows.add(row)
    return phrase_view(row, person.name)


def phrases_of(
    state: StateStore, person: Person, *, study_id: str | None, class_title: str | None
) -> list[PhraseView]:
    """Return phrases, newest first: annotators get their own phrases, others all of the study or all outside studies.

    Raises:
        RefusedError: 404 if the study is not theirs.
    """
    asked = select(PhraseRow, PersonRow.name).join(
        PersonRow, PersonRow.person_id == PhraseRow.person_id
    )
    asked = asked.where(
        PhraseRow.study_id.is_(None) if study_id is None else PhraseRow.study_id == study_id
    )
    if class_title is not None:
        asked = asked.where(PhraseRow.class_title == storable(class_title, where="class_title"))
    if person.role is Role.ANNOTATOR:
        asked = asked.where(PhraseRow.person_id == person.person_id)
    with state.reading() as rows:
        if study_id is not None:
            seen_study(rows, person, study_id)
        found = rows.execute(asked.order_by(PhraseRow.created.desc(), PhraseRow.phrase_id)).all()
        return [phrase_view(row, name) for row, name in found]


def study_phrases(state: StateStore, person: Person, study_id: str) -> list[tuple[str, PhraseView]]:
    """Return all phrases of a study with the ids of who submitted them, oldest first.

    Raises:
        RefusedError: 404 if the study is not theirs.
    """
    asked = select(PhraseRow, PersonRow.name).join(
        PersonRow, PersonRow.person_id == PhraseRow.person_id
    )
    asked = asked.where(PhraseRow.study_id == study_id).order_by(
        PhraseRow.created, PhraseRow.phrase_id
    )
    with state.reading() as rows:
        seen_study(rows, person, study_id)
        return [(row.person_id, phrase_view(row, name)) for row, name in rows.execute(asked).all()]


def mark_accepted(state: StateStore, phrase_id: str, slice_id: str) -> None:
    """Remember which slice a phrase became; saying it twice changes nothing."""
    with state.writing() as rows:
        asked = (
            update(PhraseRow)
            .where(PhraseRow.phrase_id == phrase_id)
            .values(slice_id=storable(slice_id, where="slice_id"))
        )
        rows.execute(asked)


def phrase_view(row: PhraseRow, by: str) -> PhraseView:
    fields = (name for name in PhraseView.model_fields if name != "by")
    return PhraseView(**{name: getattr(row, name) for name in fields}, by=by)


def _finite(value: float | None) -> float | None:
    """Return a number that every database can hold, None for what is none."""
    return float(value) if value is not None and math.isfinite(value) else None
