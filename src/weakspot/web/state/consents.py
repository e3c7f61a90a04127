"""Who agreed to take part in a study, and whether they passed its attention check."""

from collections.abc import Mapping

from sqlalchemy import select
from sqlalchemy.orm import Session

from weakspot.web.problems import RefusedError
from weakspot.web.roles import Person
from weakspot.web.services.view import Moment, View
from weakspot.web.state.store import StateStore, now
from weakspot.web.state.studies import NOT_AGREED, attention_answer, seen_study
from weakspot.web.state.tables import ConsentRow


class ConsentView(View):
    """What somebody agreed to.

    Args:
        agreed: when; empty if they have not.
        attention: whether they passed the attention check; null until it was answered.
    """

    agreed: Moment = ""
    attention: bool | None = None


def agree(state: StateStore, person: Person, study_id: str) -> ConsentView:
    """Write down that somebody takes part; saying it twice changes nothing.

    Raises:
        RefusedError: 404 if the study is not theirs.
    """
    with state.writing() as rows:
        seen_study(rows, person, study_id)
        row = _row(rows, person, study_id)
        if row is None:
            row = ConsentRow(person_id=person.person_id, study_id=study_id, agreed=now())
            rows.add(row)
    return ConsentView.model_validate(row)


def answer_attention(state: StateStore, person: Person, study_id: str, answer: str) -> ConsentView:
    """Write down the first answer to the attention check; a second one changes nothing.

    Raises:
        RefusedError: 404 if the study is not theirs, 409 if it has no such check or they have not agreed.
    """
    with state.writing() as rows:
        study = seen_study(rows, person, study_id)
        expected, row = attention_answer(study), _row(rows, person, study_id)
        if not expected:
            raise RefusedError(409, "This study has no attention check.")
        if row is None:
            raise RefusedError(409, NOT_AGREED)
        if row.attention is None:
            row.attention = _plain(answer) == _plain(expected)
    return ConsentView.model_validate(row)


def consent_of(state: StateStore, person: Person, study_id: str) -> ConsentView:
    with state.reading() as rows:
        row = _row(rows, person, study_id)
        return ConsentView() if row is None else ConsentView.model_validate(row)


def consents_of(state: StateStore, study_id: str) -> Mapping[str, ConsentView]:
    """Return what everybody agreed to, by the ids of people."""
    with state.reading() as rows:
        found = rows.scalars(select(ConsentRow).where(ConsentRow.study_id == study_id))
        return {row.person_id: ConsentView.model_validate(row) for row in found}


def _row(rows: Session, person: Person, study_id: str) -> ConsentRow | None:
    return rows.get(ConsentRow, (person.person_id, study_id))


def _plain(text: str) -> str:
    return " ".join(text.casefold().split()).strip(" .!?\"'")
