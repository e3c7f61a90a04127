"""The login: tokens, passwords and invitations become sessions; whoever guesses has to wait."""

import hmac
import secrets
import threading
from dataclasses import dataclass

from sqlalchemy import update
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session

from weakspot.core.errors import DataError
from weakspot.web.auth.address import ServerAddress
from weakspot.web.auth.limits import Buckets, Lockouts, Rate
from weakspot.web.auth.people import (
    clean_name,
    hash_password,
    is_right,
    login_of,
    owner_row,
    person_by_login,
)
from weakspot.web.auth.sessions import OpenedSession, Sessions, person_of_row
from weakspot.web.problems import RefusedError
from weakspot.web.roles import Person, Role
from weakspot.web.state.store import StateStore, now
from weakspot.web.state.tables import InviteRow, PersonRow, StudyRow, token_hash

ASK_AGAIN = "Ask whoever sent it for a new one."
TAKEN = "The name is taken."


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
        RefusedError: 401 if it is invalid, 409 if its study is closed.
    """
    with state.reading() as rows:
        return _check_invitation(rows, token)[1]


def accept(
    state: StateStore, token: str, *, name: str, login: str | None, password: str | None
) -> PersonRow:
    """Make the person who accepts an invitation; one use of it is gone, also if many accept at the same moment.

    Args:
        state: the shared state.
        token: of the link.
        name: how they want to be called.
        login: to come back with from anywhere; the name by default. Only with a password.
        password: to come back with from anywhere.

    Raises:
        RefusedError: 401 if the invitation is invalid, 409 if its study is closed or the login is taken.
        DataError: if the name is empty.
    """
    shown = clean_name(name)
    if not shown:
        raise DataError("A name is needed.", where="name", fix="Say how you want to be called.")
    person = PersonRow(person_id=secrets.token_urlsafe(12), name=shown, created=now())
    if password:
        person.login, person.password_hash = login_of(login or shown), hash_password(password)
    try:
        with state.writing() as rows:
            return _accept(rows, token, person)
    except IntegrityError as error:
        raise RefusedError(409, TAKEN, fix="Choose another one.") from error


def _accept(rows: Session, token: str, person: PersonRow) -> PersonRow:
    invite_id, invitation = _check_invitation(rows, token)
    if person.login is not None and person_by_login(rows, person.login) is not None:
        raise RefusedError(
            409, TAKEN, fix="Choose another one, or sign in with your name and password."
        )
    used = update(InviteRow).where(InviteRow.invite_id == invite_id, InviteRow.uses_left > 0)
    if rows.execute(used.values(uses_left=InviteRow.uses_left - 1)).rowcount != 1:  # type: ignore[attr-defined]
        raise RefusedError(401, "This invitation is used up.", fix=ASK_AGAIN)
    person.role, person.study_id = invitation.role.value, invitation.study_id
    rows.add(person)
    return person


def _check_invitation(rows: Session, token: str) -> tuple[str, Invitation]:
    invite = rows.query(InviteRow).filter(InviteRow.token_hash == token_hash(token)).one_or_none()
    study = None if invite is None else rows.get(StudyRow, invite.study_id)
    if invite is None or study is None:
        raise RefusedError(
            401, "The invitation is invalid.", fix="Open the whole address that you were sent."
        )
    if invite.expires < now():
        raise RefusedError(401, "This invitation has run out.", fix=ASK_AGAIN)
    if invite.uses_left < 1:
        raise RefusedError(401, "This invitation is used up.", fix=ASK_AGAIN)
    if not study.is_open:
        raise RefusedError(
            409, "The study of this invitation is closed.", fix="Ask whoever sent it."
        )
    return invite.invite_id, Invitation(
        study_id=study.study_id, title=study.title, role=Role(invite.role)
    )


TRIES = Rate(burst=10, a_second=10 / 60)


class Login:
    """Signs people in.

    Args:
        state: people, invitations and sessions.
        owner_token: whoever has it is the owner; with an empty one nobody is.
        address: how browsers reach the server.
        is_read_only: whether nobody may change anything.
    """

    def __init__(
        self,
        *,
        state: StateStore,
        owner_token: str,
        address: ServerAddress,
        is_read_only: bool = False,
    ) -> None:
        self.address = address
        self.is_read_only = is_read_only
        self.sessions = Sessions(state)
        self.lockouts = Lockouts()
        self._state = state
        self._owner_hash = token_hash(owner_token) if owner_token else ""
        self._tries = Buckets(TRIES)
        self._guard = threading.Lock()
        self._once: set[str] = set()
        self._owner: Person | None = None

    def token_for_once(self) -> str:
        """Return a token of the owner that works once: other users of the machine can read what a browser is started with."""
        token = secrets.token_urlsafe(24)
        with self._guard:
            self._once.add(token_hash(token))
        return token

    def sign_in_with_token(self, token: str, *, client: str) -> OpenedSession:
        """Let the owner in.

        Raises:
            RefusedError: 401 if the token is not the owner's, 429 after too many wrong ones.
        """
        self._take_try(client)
        if not self._is_owner(token_hash(token)):
            raise RefusedError(
                401,
                "The token is invalid.",
                fix="Open the newest address that `weakspot serve` printed.",
            )
        with self._state.writing() as rows:
            opened = self.sessions.open(rows, person_of_row(owner_row(rows)))
        self._tries.give_back(client)
        return opened

    def person_with_owner_token(self, token: str, *, client: str) -> Person:
        """Return the owner, for a script that sends the token with every request; no session is opened.

        Raises:
            RefusedError: 401 if the token is not the owner's, 429 after too many wrong ones.
        """
        if not self._owner_hash or not hmac.compare_digest(token_hash(token), self._owner_hash):
            self._take_try(client)
            raise RefusedError(
                401,
                "The token is invalid.",
                where="Authorization",
                fix="Send the token that `weakspot serve` printed behind #token=.",
            )
        with self._guard:
            if self._owner is None:
                with self._state.writing() as rows:
                    self._owner = person_of_row(owner_row(rows))
            return self._owner

    def sign_in_with_password(self, login: str, password: str, *, client: str) -> OpenedSession:
        """Sign in somebody who has a login.

        Raises:
            RefusedError: 401 if name and password do not fit, 429 after too many of those.
        """
        self._take_try(client)
        key = login_of(login)
        wait = self.lockouts.seconds_left(key, client)
        if wait:
            raise RefusedError(
                429, f"Too many wrong passwords. Try again in {wait} seconds.", retry_after=wait
            )
        with self._state.reading() as rows:
            row = person_by_login(rows, login)
        if not is_right(password, None if row is None else row.password_hash) or row is None:
            self.lockouts.failed(key, client)
            raise RefusedError(
                401,
                "Name or password is wrong.",
                fix="Check both, or ask the owner of the study.",
            )
        self.lockouts.succeeded(key, client)
        with self._state.writing() as rows:
            opened = self.sessions.open(rows, person_of_row(row))
        self._tries.give_back(client)
        return opened

    def sign_in_with_invitation(
        self,
        token: str,
        *,
        client: str,
        name: str,
        login: str | None = None,
        password: str | None = None,
    ) -> OpenedSession:
        """Sign in somebody who was invited.

        Raises:
            RefusedError: 401 if the invitation is invalid, 403 on a server that only shows, 409 if the study is closed or the
                login taken, 429 after too many wrong ones.
        """
        self._take_try(client)
        if self.is_read_only:
            raise RefusedError(403, "This server only shows things; nobody can join a study here.")
        row = accept(self._state, token, name=name, login=login, password=password)
        with self._state.writing() as rows:
            opened = self.sessions.open(rows, person_of_row(row))
        self._tries.give_back(client)
        return opened

    def invitation(self, token: str, *, client: str) -> Invitation:
        """Return what an invitation is to.

        Raises:
            RefusedError: as `sign_in_with_invitation`.
        """
        self._take_try(client)
        found = invitation_with(self._state, token)
        self._tries.give_back(client)
        return found

    def _take_try(self, client: str) -> None:
        wait = self._tries.take(client)
        if wait:
            raise RefusedError(
                429, f"Too many tries to sign in. Try again in {wait} seconds.", retry_after=wait
            )

    def _is_owner(self, given: str) -> bool:
        with self._guard:
            if given in self._once:
                self._once.discard(given)
                return True
        return bool(self._owner_hash) and hmac.compare_digest(given, self._owner_hash)
