"""The door: tokens, passwords and invitations become sessions; whoever guesses has to wait."""

import hmac
import secrets
import threading

from weakspot.web.gate.address import ServerAddress
from weakspot.web.gate.invitations import Invitation, accept, invitation_with
from weakspot.web.gate.lockouts import Lockouts
from weakspot.web.gate.passwords import is_right
from weakspot.web.gate.people import login_of, owner_row, person_by_login
from weakspot.web.gate.rates import Buckets, Rate
from weakspot.web.gate.sessions import OpenedSession, Sessions, person_of_row
from weakspot.web.problems import RefusedError
from weakspot.web.state.store import StateStore
from weakspot.web.token_hash import token_hash

TRIES = Rate(burst=10, a_second=10 / 60)


class Door:
    """Where people come in.

    Args:
        state: people, invitations and sessions.
        owner_token: whoever has it is the owner; with an empty one nobody is.
        address: how browsers reach the server.
        is_read_only: whether nobody may change anything.
    """

    def __init__(self, *, state: StateStore, owner_token: str, address: ServerAddress, is_read_only: bool = False) -> None:
        self.address = address
        self.is_read_only = is_read_only
        self.sessions = Sessions(state)
        self.lockouts = Lockouts()
        self._state = state
        self._owner_hash = token_hash(owner_token) if owner_token else ""
        self._tries = Buckets(TRIES)
        self._guard = threading.Lock()
        self._once: set[str] = set()

    def token_for_once(self) -> str:
        """Return a token of the owner that works once: other users of the machine can read what a browser is started with."""
        token = secrets.token_urlsafe(24)
        with self._guard:
            self._once.add(token_hash(token))
        return token

    def enter_with_token(self, token: str, *, client: str) -> OpenedSession:
        """Let the owner in.

        Raises:
            RefusedError: 401 if the token is not the owner's, 429 after too many wrong ones.
        """
        self._take_try(client)
        if not self._is_owner(token_hash(token)):
            raise RefusedError(401, "This token lets nobody in.", fix="Open the newest address that `weakspot serve` printed.")
        with self._state.writing() as rows:
            opened = self.sessions.open(rows, person_of_row(owner_row(rows)))
        self._tries.give_back(client)
        return opened

    def enter_with_password(self, login: str, password: str, *, client: str) -> OpenedSession:
        """Let somebody in who has a login.

        Raises:
            RefusedError: 401 if name and password do not fit, 429 after too many of those.
        """
        self._take_try(client)
        key = login_of(login)
        wait = self.lockouts.seconds_left(key, client)
        if wait:
            raise RefusedError(429, f"Too many wrong passwords. Try again in {wait} seconds.", retry_after=wait)
        with self._state.reading() as rows:
            row = person_by_login(rows, login)
        if not is_right(password, None if row is None else row.password_hash) or row is None:
            self.lockouts.failed(key, client)
            raise RefusedError(401, "This name and password let nobody in.", fix="Check both, or ask the owner of the study.")
        self.lockouts.succeeded(key, client)
        with self._state.writing() as rows:
            opened = self.sessions.open(rows, person_of_row(row))
        self._tries.give_back(client)
        return opened

    def enter_with_invitation(
        self, token: str, *, client: str, name: str, login: str | None = None, password: str | None = None
    ) -> OpenedSession:
        """Let somebody in who was invited.

        Raises:
            RefusedError: 401 if the invitation lets nobody in, 403 on a server that only shows, 409 if the study is closed or the
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
            RefusedError: as `enter_with_invitation`.
        """
        self._take_try(client)
        found = invitation_with(self._state, token)
        self._tries.give_back(client)
        return found

    def _take_try(self, client: str) -> None:
        wait = self._tries.take(client)
        if wait:
            raise RefusedError(429, f"Too many tries to come in. Try again in {wait} seconds.", retry_after=wait)

    def _is_owner(self, given: str) -> bool:
        with self._guard:
            if given in self._once:
                self._once.discard(given)
                return True
        return bool(self._owner_hash) and hmac.compare_digest(given, self._owner_hash)
