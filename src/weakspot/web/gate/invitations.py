"""Invitations: a link that lets somebody into one study, as often as its owner said and until it runs out."""

import secrets
from dataclasses import dataclass

from sqlalchemy import update
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session

from weakspot.core.errors import DataError
from weakspot.web.gate.passwords import hashed
from weakspot.web.gate.people import clean_name, login_of, person_by_login
from weakspot.web.problems import RefusedError
from weakspot.web.roles import Role
from weakspot.web.state.store import StateStore, now
from weakspot.web.state.tables import InviteRow, PersonRow, StudyRow
from weakspot.web.token_hash import token_hash

ASK_AGAIN = "Ask whoever sent it for a new one."
TAKEN = "Somebody already comes in under this name."


@dataclass(frozen=True, kw_only=True)
class Invitation:
    """What an invitation is to.

    Args:
        study_id: the study.
        title: its title.
        role: what those who accept may do there.
    """

    study_id: str
    title: str
    role: Role


def invitation_with(state: StateStore, token: str) -> Invitation:
    """Return what an invitation is to; it is not used up.

    Raises:
        RefusedError: 401 if it lets nobody in, 409 if its study is closed.
    """
    with state.reading() as rows:
        return _good(rows, token)[1]


def accept(state: StateStore, token: str, *, name: str, login: str | None, password: str | None) -> PersonRow:
    """Make the person who accepts an invitation; one use of it is gone, also if many accept at the same moment.

    Args:
        state: the shared state.
        token: of the link.
        name: how they want to be called.
        login: to come back with from anywhere; the name by default. Only with a password.
        password: to come back with from anywhere.

    Raises:
        RefusedError: 401 if the invitation lets nobody in, 409 if its study is closed or the login is taken.
        DataError: if the name is empty.
    """
    shown = clean_name(name)
    if not shown:
        raise DataError("A name is needed.", where="name", fix="Say how you want to be called.")
    person = PersonRow(person_id=secrets.token_urlsafe(12), name=shown, created=now())
    if password:
        person.login, person.password_hash = login_of(login or shown), hashed(password)
    try:
        with state.writing() as rows:
            return _accepted(rows, token, person)
    except IntegrityError as error:
        raise RefusedError(409, TAKEN, fix="Choose another one.") from error


def _accepted(rows: Session, token: str, person: PersonRow) -> PersonRow:
    invite_id, invitation = _good(rows, token)
    if person.login is not None and person_by_login(rows, person.login) is not None:
        raise RefusedError(409, TAKEN, fix="Choose another one, or come in with your name and password.")
    used = update(InviteRow).where(InviteRow.invite_id == invite_id, InviteRow.uses_left > 0)
    if rows.execute(used.values(uses_left=InviteRow.uses_left - 1)).rowcount != 1:  # type: ignore[attr-defined]
        raise RefusedError(401, "This invitation is used up.", fix=ASK_AGAIN)
    person.role, person.study_id = invitation.role.value, invitation.study_id
    rows.add(person)
    return person


def _good(rows: Session, token: str) -> tuple[str, Invitation]:
    invite = rows.query(InviteRow).filter(InviteRow.token_hash == token_hash(token)).one_or_none()
    study = None if invite is None else rows.get(StudyRow, invite.study_id)
    if invite is None or study is None:
        raise RefusedError(401, "This invitation lets nobody in.", fix="Open the whole address that you were sent.")
    if invite.expires < now():
        raise RefusedError(401, "This invitation has run out.", fix=ASK_AGAIN)
    if invite.uses_left < 1:
        raise RefusedError(401, "This invitation is used up.", fix=ASK_AGAIN)
    if not study.is_open:
        raise RefusedError(409, "The study of this invitation is closed.", fix="Ask whoever sent it.")
    return invite.invite_id, Invitation(study_id=study.study_id, title=study.title, role=Role(invite.role))
