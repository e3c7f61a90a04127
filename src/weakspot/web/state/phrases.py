"""Phrases: everything that people said of classes, kept for ever with what came of it."""

import math
import secrets
from typing import NotRequired, TypedDict, Unpack

from sqlalchemy import select, update

from weakspot.app.browsing.view import View
from weakspot.web.problems import RefusedError
from weakspot.web.roles import Person, Role
from weakspot.web.state.activity import active_seconds
from weakspot.web.state.store import StateStore, now
from weakspot.web.state.studies import CLOSED, seen_study, storable
from weakspot.web.state.tables import PersonRow, PhraseRow


class PhraseView(View):
    """Something that somebody said of a class.

    Args:
        phrase_id: unguessable.
        class_title: the class.
        phrase: the words.
        threshold: similarity from which on a sample was meant; null for the one that is best on the discovery half.
        score: Error Score on the discovery half, where the threshold was chosen.
        held_out_score: Error Score on parts of the discovery half that the threshold was not chosen on.
        confirmed_score: Error Score on the confirmation half; null until it was asked.
        p_value: what the confirmation half said; null until it was asked.
        fit: the note on rewording, if there was one.
        seconds: how long this person had been at work in the study.
        created: when it was said, in UTC.
        slice_id: the slice that it became when it was accepted.
        by: who said it.
    """

    phrase_id: str
    class_title: str
    phrase: str
    threshold: float | None
    score: float | None
    held_out_score: float | None
    confirmed_score: float | None
    p_value: float | None
    fit: str
    seconds: float
    created: str
    slice_id: str | None
    by: str


class Said(TypedDict):
    """What is written down of a phrase; see `PhraseView`. A figure that is no finite number is kept as null."""

    study_id: str | None
    class_title: str
    phrase: str
    threshold: float | None
    score: float | None
    held_out_score: float | None
    confirmed_score: NotRequired[float | None]
    p_value: NotRequired[float | None]
    fit: NotRequired[str]


def keep_phrase(state: StateStore, person: Person, **said: Unpack[Said]) -> PhraseView:
    """Write down what somebody said; when this returns it is on disk.

    Raises:
        RefusedError: 404 if the study is not theirs, 409 if it is closed.
        DataError: if a text cannot be kept.
    """
    study_id = said["study_id"]
    row = PhraseRow(
        phrase_id=secrets.token_urlsafe(12),
        person_id=person.person_id,
        study_id=study_id,
        class_title=storable(said["class_title"], where="class_title"),
        phrase=storable(said["phrase"], where="phrase"),
        threshold=_finite(said["threshold"]),
        score=_finite(said["score"]),
        held_out_score=_finite(said["held_out_score"]),
        confirmed_score=_finite(said.get("confirmed_score")),
        p_value=_finite(said.get("p_value")),
        fit=storable(said.get("fit", ""), where="fit"),
    )
    with state.writing() as rows:
        if study_id is not None and not seen_study(rows, person, study_id, is_locked=True).is_open:
            raise RefusedError(409, CLOSED)
        row.seconds = active_seconds(rows, person.person_id, study_id)
        row.created = now()
        rows.add(row)
    return phrase_view(row, person.name)


def phrases_of(state: StateStore, person: Person, *, study_id: str | None, class_title: str | None) -> list[PhraseView]:
    """Return what was said, newest first: annotators get their own phrases, others all of the study or all outside studies.

    Raises:
        RefusedError: 404 if the study is not theirs.
    """
    asked = select(PhraseRow, PersonRow.name).join(PersonRow, PersonRow.person_id == PhraseRow.person_id)
    asked = asked.where(PhraseRow.study_id.is_(None) if study_id is None else PhraseRow.study_id == study_id)
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
    """Return everything that was said in a study with the id of who said it, oldest first.

    Raises:
        RefusedError: 404 if the study is not theirs.
    """
    asked = select(PhraseRow, PersonRow.name).join(PersonRow, PersonRow.person_id == PhraseRow.person_id)
    asked = asked.where(PhraseRow.study_id == study_id).order_by(PhraseRow.created, PhraseRow.phrase_id)
    with state.reading() as rows:
        seen_study(rows, person, study_id)
        return [(row.person_id, phrase_view(row, name)) for row, name in rows.execute(asked).all()]


def mark_accepted(state: StateStore, phrase_id: str, slice_id: str) -> None:
    """Remember which slice a phrase became; saying it twice changes nothing."""
    with state.writing() as rows:
        asked = update(PhraseRow).where(PhraseRow.phrase_id == phrase_id).values(slice_id=storable(slice_id, where="slice_id"))
        rows.execute(asked)


def phrase_view(row: PhraseRow, by: str) -> PhraseView:
    """Return a row as pages see it."""
    fields = (name for name in PhraseView.model_fields if name not in ("created", "by"))
    return PhraseView(**{name: getattr(row, name) for name in fields}, created=row.created.isoformat(timespec="seconds"), by=by)


def _finite(value: float | None) -> float | None:
    """Return a number that every database can hold, None for what is none."""
    return float(value) if value is not None and math.isfinite(value) else None
