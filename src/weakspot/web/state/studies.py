"""Studies: what they are about, whether they go on, who may see or work on what, and invitations, of which only the hash is kept."""

import secrets
from collections.abc import Sequence
from datetime import timedelta
from typing import Annotated

from pydantic import BeforeValidator, Field
from sqlalchemy import select, update
from sqlalchemy.orm import Session

from weakspot.core.errors import DataError
from weakspot.web.problems import RefusedError
from weakspot.web.roles import Person, Role
from weakspot.web.services.view import Moment, View
from weakspot.web.state.store import StateStore, now
from weakspot.web.state.tables import ConsentRow, InviteRow, StudyRow, token_hash

ATTENTION = "attention_answer"
NO_STUDY = "There is no such study."
NOT_AGREED = "Read what the study is about, and agree to take part, first."
CLOSED = "The study is closed: no phrase can be added."


def _titles(kept: object) -> object:
    return kept.get("titles", []) if isinstance(kept, dict) else kept


def _options(kept: object) -> object:
    if isinstance(kept, dict):
        return {name: value for name, value in kept.items() if name in StudyOptions.model_fields}
    return StudyOptions() if kept is None else kept


class StudyOptions(View):
    """How a study is done.

    Args:
        shows_suggestions: whether words with their scores are offered; if not, nothing scored is shown before somebody types.
        consent: what those who take part agree to first; empty: nobody is asked.
        attention_question: asked once, to see who reads; empty: nothing is asked.
        groups: column whose values, with the class, are the groups that every phrase is measured on; empty: none.
    """

    shows_suggestions: bool = True
    consent: str = Field(default="", max_length=20_000)
    attention_question: str = Field(default="", max_length=2000)
    groups: str = Field(default="", max_length=500)


class StudyView(View):
    """A study.

    Args:
        study_id: unguessable.
        title: what people call it.
        classes: titles of its classes.
        instructions: what those who take part read first.
        is_open: whether phrases can be added.
        created: when it was begun.
        options: how it is done.
    """

    study_id: str
    title: str
    classes: Annotated[list[str], BeforeValidator(_titles)]
    instructions: str
    is_open: bool
    created: Moment
    options: Annotated[StudyOptions, BeforeValidator(_options)] = StudyOptions()


class InviteView(View):
    """An invitation.

    Args:
        invite_id: unguessable, and no use to anybody.
        role: what those who accept may do.
        uses: how many people it was made for.
        uses_left: how many more may accept; 0 when it was taken back.
        created: when it was made.
        expires: until when it can be accepted.
        is_good: whether it can still be accepted.
    """

    invite_id: str
    role: Role
    uses: int
    uses_left: int
    created: Moment
    expires: Moment
    is_good: bool


class MadeInviteView(View):
    """A new invitation with its secret, which is shown this once.

    Args:
        invite: what is kept of it.
        token: the secret.
        fragment: what to put behind the address of the server.
    """

    invite: InviteView
    token: str
    fragment: str


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


def attention_answer(study: StudyRow) -> str:
    """Return the right answer to the attention check of a study; empty if it has none."""
    options = study.options or {}
    return str(options.get(ATTENTION, "")) if options.get("attention_question") else ""


def classes_of(study: StudyRow) -> list[str]:
    return [str(title) for title in study.classes.get("titles", [])]


def create_study(
    state: StateStore,
    *,
    title: str,
    classes: Sequence[str],
    instructions: str,
    options: StudyOptions | None = None,
    attention: str = "",
) -> StudyView:
    """Begin a study.

    Args:
        state: where it is kept.
        title: what people call it.
        classes: titles of its classes.
        instructions: what those who take part read first.
        options: how it is done.
        attention: the right answer to its attention check; nobody who takes part is told.
    """
    chosen = (options or StudyOptions()).model_dump()
    texts = {**chosen, ATTENTION: attention}
    for name, value in texts.items():
        if isinstance(value, str):
            storable(value, where=name)
    study = StudyRow(
        options=texts,
        study_id=secrets.token_urlsafe(12),
        title=storable(title, where="title"),
        classes={"titles": [storable(one, where="classes") for one in dict.fromkeys(classes)]},
        instructions=storable(instructions, where="instructions"),
        is_open=True,
        created=now(),
    )
    with state.writing() as rows:
        rows.add(study)
    return StudyView.model_validate(study)


def studies_for(state: StateStore, person: Person) -> list[StudyView]:
    asked = select(StudyRow).order_by(StudyRow.created.desc(), StudyRow.study_id)
    with state.reading() as rows:
        return [
            StudyView.model_validate(study)
            for study in rows.scalars(asked)
            if may_see(person, study.study_id)
        ]


def study_of(state: StateStore, person: Person, study_id: str) -> StudyView:
    """Return a study.

    Raises:
        RefusedError: 404 if there is none, or none for this person: nobody learns which others there are.
    """
    with state.reading() as rows:
        return StudyView.model_validate(seen_study(rows, person, study_id))


def seen_study(
    rows: Session, person: Person, study_id: str, *, is_locked: bool = False
) -> StudyRow:
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


def open_or_close(state: StateStore, person: Person, study_id: str, *, is_open: bool) -> StudyView:
    """Let a study go on, or end it for now; its phrases stay.

    Raises:
        RefusedError: 404 if there is no such study.
    """
    with state.writing() as rows:
        study = seen_study(rows, person, study_id)
        study.is_open = is_open
    return StudyView.model_validate(study)


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
        RefusedError: 403 outside of all studies or before they agreed to take part, 404 if the study or the class is not theirs,
            409 if the study is closed.
    """
    if study_id is None:
        if person.role is Role.ANNOTATOR:
            raise RefusedError(403, "Annotators see their study only.")
        return
    study = study_of(state, person, study_id)
    if person.role is Role.ANNOTATOR:
        if title not in study.classes:
            raise RefusedError(404, "The study has no such class.")
        if not study.is_open:
            raise RefusedError(409, CLOSED)
        if study.options.consent:
            with state.reading() as rows:
                if rows.get(ConsentRow, (person.person_id, study_id)) is None:
                    raise RefusedError(403, NOT_AGREED)


def make_invite(
    state: StateStore, person: Person, study_id: str, *, role: Role, uses: int, days: int
) -> MadeInviteView:
    """Invite people into a study.

    Raises:
        RefusedError: 404 if there is no such study, 409 if it is closed.
    """
    token, today = secrets.token_urlsafe(24), now()
    row = InviteRow(
        invite_id=secrets.token_urlsafe(12),
        token_hash=token_hash(token),
        study_id=study_id,
        role=role.value,
        uses=uses,
        uses_left=uses,
        created=today,
        expires=today + timedelta(days=days),
    )
    with state.writing() as rows:
        if not seen_study(rows, person, study_id, is_locked=True).is_open:
            raise RefusedError(409, "The study is closed: nobody can be invited into it.")
        rows.add(row)
    return MadeInviteView(
        invite=InviteView.model_validate(row), token=token, fragment=f"#invite={token}"
    )


def invites_of(state: StateStore, person: Person, study_id: str) -> list[InviteView]:
    """Return the invitations into a study, newest first.

    Raises:
        RefusedError: 404 if there is no such study.
    """
    asked = (
        select(InviteRow)
        .where(InviteRow.study_id == study_id)
        .order_by(InviteRow.created.desc(), InviteRow.invite_id)
    )
    with state.reading() as rows:
        seen_study(rows, person, study_id)
        return [InviteView.model_validate(row) for row in rows.scalars(asked)]


def revoke_invite(state: StateStore, study_id: str, invite_id: str) -> InviteView:
    """Take an invitation back; who accepted it stays.

    Raises:
        RefusedError: 404 if the study has no such invitation.
    """
    place = (InviteRow.invite_id == invite_id, InviteRow.study_id == study_id)
    with state.writing() as rows:
        rows.execute(update(InviteRow).where(*place).values(uses_left=0, expires=now()))
        found = rows.scalars(select(InviteRow).where(*place)).one_or_none()
    if found is None:
        raise RefusedError(404, "There is no such invitation.")
    return InviteView.model_validate(found)
