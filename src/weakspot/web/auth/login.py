"""The login: tokens, passwords and invitations become sessions; those who guess have to wait.

Passwords are kept as hashes only. A browser holds a random token, of which the state holds the hash.
"""

import hmac
import math
import secrets
import threading
import time
import unicodedata
from collections import OrderedDict
from collections.abc import Callable
from datetime import timedelta
from functools import cache

from argon2 import PasswordHasher
from argon2.exceptions import Argon2Error, InvalidHashError
from sqlalchemy import Connection, delete, func, insert, select, update
from sqlalchemy.exc import IntegrityError

from weakspot.core.errors import ConfigError, DataError
from weakspot.web.auth.address import ServerAddress
from weakspot.web.problems import RefusedError
from weakspot.web.services.view import View
from weakspot.web.state.store import (
    INVITES,
    PEOPLE,
    SESSIONS,
    STUDIES,
    Entry,
    Person,
    Role,
    StateStore,
    entry_of,
    now,
    token_hash,
)

MAX_BUCKETS = 20_000


Rate = tuple[float, float]
"""How often: requests at once, and requests a second in the long run."""


class Buckets:
    """One bucket of requests for everybody who asks; those who have not asked for long are forgotten.

    Args:
        rate: how often everybody may ask.
        clock: seconds that only grow.
    """

    def __init__(self, rate: Rate, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._burst, self._a_second = rate
        self._clock = clock
        self._guard = threading.Lock()
        self._left: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def take(self, key: str) -> int:
        """Take one request out of somebody's bucket: return 0, or in how many seconds there is one again."""
        with self._guard:
            left = self._now_left(key)
            if left < 1:
                return max(1, math.ceil((1 - left) / self._a_second))
            self._put(key, left - 1)
            return 0

    def give_back(self, key: str) -> None:
        """Put a request back that should not have counted."""
        with self._guard:
            self._put(key, min(self._burst, self._now_left(key) + 1))

    def _now_left(self, key: str) -> float:
        left, since = self._left.get(key, (self._burst, self._clock()))
        return min(self._burst, left + (self._clock() - since) * self._a_second)

    def _put(self, key: str, left: float) -> None:
        self._left[key] = (left, self._clock())
        self._left.move_to_end(key)
        while len(self._left) > MAX_BUCKETS:
            self._left.popitem(last=False)


FREE_FAILURES = 5
FIRST_SECONDS = 10.0
MAX_SECONDS = 900.0
FORGOTTEN_AFTER_SECONDS = 3600.0
MAX_LOCKOUTS = 20_000


class Lockouts:
    """Who failed how often.

    Args:
        clock: seconds that only grow.
    """

    def __init__(self, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._guard = threading.Lock()
        self._failures: OrderedDict[tuple[str, str], tuple[int, float]] = OrderedDict()

    def seconds_left(self, login: str, address: str) -> int:
        """Return for how long a login is still closed to an address; 0 if it is open."""
        with self._guard:
            count, last = self._known(login, address)
            if count < FREE_FAILURES:
                return 0
            wait: float = min(MAX_SECONDS, FIRST_SECONDS * 2.0 ** (count - FREE_FAILURES))
            return max(0, math.ceil(last + wait - self._clock()))

    def failed(self, login: str, address: str) -> None:
        with self._guard:
            count, _ = self._known(login, address)
            self._failures[login, address] = (count + 1, self._clock())
            self._failures.move_to_end((login, address))
            while len(self._failures) > MAX_LOCKOUTS:
                self._failures.popitem(last=False)

    def succeeded(self, login: str, address: str) -> None:
        with self._guard:
            self._failures.pop((login, address), None)

    def _known(self, login: str, address: str) -> tuple[int, float]:
        count, last = self._failures.get((login, address), (0, 0.0))
        return (0, 0.0) if self._clock() - last > FORGOTTEN_AFTER_SECONDS else (count, last)


SHORTEST = 8
LONGEST = 1000
# A hash takes 64 MiB while it is made; a crowd at the login must not take all memory.
_AT_ONCE = threading.BoundedSemaphore(2)


def hash_password(password: str) -> str:
    """Return what is kept of a password.

    Raises:
        ConfigError: if it is too short or too long.
    """
    if not SHORTEST <= len(password) <= LONGEST:
        raise ConfigError(f"A password has {SHORTEST} to {LONGEST} characters.", where="password")
    with _AT_ONCE:
        return str(_hasher().hash(_as_bytes(password)))


def is_right(password: str, kept: str | None) -> bool:
    """Return whether a password is the one that was kept; takes as long when none was."""
    with _AT_ONCE:
        try:
            _hasher().verify(kept or _nobodys(), _as_bytes(password[:LONGEST]))
        except (Argon2Error, InvalidHashError):
            return False
    return kept is not None


@cache
def _hasher() -> PasswordHasher:
    return PasswordHasher()


@cache
def _nobodys() -> str:
    return str(_hasher().hash("the password of nobody"))


def _as_bytes(password: str) -> bytes:
    return password.encode("utf-8", "surrogatepass")


MAX_NAME_LENGTH = 100
OWNER_ID = "owner"
OWNER_NAME = "owner"


def clean_name(text: str) -> str:
    r"""Return a name without what cannot be seen; empty if nothing is left.

    >>> clean_name("  Ada\x00  Lovelace\n")
    'Ada Lovelace'
    """
    seen = "".join(
        " " if character.isspace() else character
        for character in text
        if character.isspace() or not unicodedata.category(character).startswith("C")
    )
    return " ".join(unicodedata.normalize("NFC", seen).split())[:MAX_NAME_LENGTH]


def login_of(text: str) -> str:
    """Return a login as it is kept: the name without its case, so that nobody can sign in as a look-alike."""
    return unicodedata.normalize("NFKC", clean_name(text)).casefold()


def person_by_login(rows: Connection, text: str) -> Entry | None:
    login = login_of(text)
    return entry_of(rows, PEOPLE, login=login) if login else None


def has_owner_with_password(state: StateStore) -> bool:
    asked = select(func.count()).where(
        PEOPLE.c.role == Role.OWNER.value, PEOPLE.c.password_hash.is_not(None)
    )
    with state.reading() as rows:
        return bool(rows.scalar(asked))


def set_owner_password(state: StateStore, name: str, password: str) -> str:
    """Make an owner, or give one another password; their browsers have to sign in again.

    Raises:
        ConfigError: if the name is empty or belongs to somebody who is no owner, or the password is too short.
    """
    shown, kept = clean_name(name), hash_password(password)
    if not login_of(shown):
        raise ConfigError("An owner needs a name.", where="--set-password", given=name)
    with state.writing() as rows:
        known = person_by_login(rows, shown)
        if known is None:
            add_person(rows, name=shown, role=Role.OWNER, login=login_of(shown), password_hash=kept)
        elif known.role != Role.OWNER.value:
            raise ConfigError(
                "This name belongs to somebody who was invited.",
                where="--set-password",
                given=shown,
            )
        else:
            own = {"person_id": known.person_id}
            rows.execute(update(PEOPLE).filter_by(**own).values(password_hash=kept))
            rows.execute(delete(SESSIONS).filter_by(**own))
    return shown


def the_owner(rows: Connection) -> Person:
    """Return the person who has the owner's token; made when they first come."""
    known = entry_of(rows, PEOPLE, person_id=OWNER_ID)
    if known is not None:
        return person_of_row(known)
    return add_person(rows, person_id=OWNER_ID, name=OWNER_NAME, role=Role.OWNER)


def add_person(rows: Connection, *, role: Role, **fields: str | None) -> Person:
    given = {"person_id": secrets.token_urlsafe(12), **fields, "role": role.value}
    person = insert(PEOPLE).values(**given, created=now())
    return person_of_row(rows.execute(person.returning(PEOPLE)).one())


def person_of_row(row: Entry) -> Person:
    return Person(
        person_id=row.person_id, name=row.name, role=Role(row.role), study_id=row.study_id
    )


LIFETIME = timedelta(days=7)
SEEN_AGAIN_AFTER = timedelta(minutes=10)
REMEMBERED_SECONDS = 2.0
MAX_REMEMBERED_SESSIONS = 4096


OpenedSession = tuple[str, Person]
"""The token for the cookie, and who signed in."""


def csrf_token_of(token: str) -> str:
    return hmac.new(
        token.encode("utf-8", "surrogatepass"), b"weakspot request token", "sha256"
    ).hexdigest()


class Sessions:
    """The sessions of a server.

    Args:
        state: where they are kept.
        clock: seconds that only grow.
    """

    def __init__(self, state: StateStore, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._state = state
        self._clock = clock
        self._guard = threading.Lock()
        self._remembered: dict[str, tuple[Person, float]] = {}

    def open(self, rows: Connection, person: Person) -> OpenedSession:
        secret, today = secrets.token_urlsafe(32), now()
        rows.execute(delete(SESSIONS).where(SESSIONS.c.expires < today))
        session = insert(SESSIONS).values(
            token_hash=token_hash(secret),
            person_id=person.person_id,
            created=today,
            last_seen=today,
            expires=today + LIFETIME,
        )
        rows.execute(session)
        return secret, person

    def recall(self, token: str) -> Person | None:
        """Return who a session's token belonged to a moment ago, without asking; good enough for reading."""
        with self._guard:
            person, until = self._remembered.get(token_hash(token), (None, 0.0))
        return person if self._clock() < until else None

    def person_with(self, token: str) -> Person | None:
        """Return who a session's token belongs to, None if to nobody."""
        key = token_hash(token)
        found = self._look_up(key)
        with self._guard:
            self._remembered.pop(key, None)
            if len(self._remembered) > MAX_REMEMBERED_SESSIONS:
                self._remembered.clear()
            if found is not None:
                self._remembered[key] = (found, self._clock() + REMEMBERED_SECONDS)
        return found

    def close(self, token: str) -> bool:
        """Forget a session; return whether there was one."""
        key = token_hash(token)
        with self._guard:
            self._remembered.pop(key, None)
        with self._state.writing() as rows:
            return bool(rows.execute(delete(SESSIONS).filter_by(token_hash=key)).rowcount)

    def _look_up(self, key: str) -> Person | None:
        today = now()
        with self._state.reading() as rows:
            row = entry_of(rows, SESSIONS, token_hash=key)
            if row is None or row.expires < today:
                return None
            person = entry_of(rows, PEOPLE, person_id=row.person_id)
        if person is None:
            return None
        if today - row.last_seen > SEEN_AGAIN_AFTER:
            seen = update(SESSIONS).filter_by(token_hash=key)
            with self._state.writing() as rows:
                rows.execute(seen.values(last_seen=today, expires=today + LIFETIME))
        return person_of_row(person)


ASK_AGAIN = "Ask whoever sent it for a new one."
TAKEN = "The name is taken."


class InvitationView(View):
    """What an invitation is to.

    Args:
        study_id: the study.
        title: its title.
        role: what those who accept may do there.
    """

    study_id: str
    title: str
    role: Role


def invitation_with(state: StateStore, token: str) -> InvitationView:
    """Return what an invitation is to; it is not used up.

    Raises:
        RefusedError: 401 if it is invalid, 409 if its study is closed.
    """
    with state.reading() as rows:
        return _check_invitation(rows, token)[1]


def accept(
    state: StateStore, token: str, *, name: str, login: str | None, password: str | None
) -> Person:
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
    own: dict[str, str] = {}
    if password:
        own = {"login": login_of(login or shown), "password_hash": hash_password(password)}
    try:
        with state.writing() as rows:
            invite_id, invitation = _check_invitation(rows, token)
            if own and person_by_login(rows, own["login"]) is not None:
                raise RefusedError(
                    409, TAKEN, fix="Choose another one, or sign in with your name and password."
                )
            used = update(INVITES).where(INVITES.c.invite_id == invite_id, INVITES.c.uses_left > 0)
            if rows.execute(used.values(uses_left=INVITES.c.uses_left - 1)).rowcount != 1:
                raise RefusedError(401, "This invitation is used up.", fix=ASK_AGAIN)
            role, study_id = invitation.role, invitation.study_id
            return add_person(rows, name=shown, role=role, study_id=study_id, **own)
    except IntegrityError as error:
        raise RefusedError(409, TAKEN, fix="Choose another one.") from error


def _check_invitation(rows: Connection, token: str) -> tuple[str, InvitationView]:
    invite = entry_of(rows, INVITES, token_hash=token_hash(token))
    study = None if invite is None else entry_of(rows, STUDIES, study_id=invite.study_id)
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
    return invite.invite_id, InvitationView(
        study_id=study.study_id, title=study.title, role=Role(invite.role)
    )


TRIES = 10.0, 10 / 60


class Login:
    """Signs people in.

    Args:
        state: people, invitations and sessions.
        owner_token: makes its holder the owner; with an empty one nobody is.
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
            owner = the_owner(rows)
        return self._let_in(owner, client)

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
                    self._owner = the_owner(rows)
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
        return self._let_in(person_of_row(row), client)

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
        person = accept(self._state, token, name=name, login=login, password=password)
        return self._let_in(person, client)

    def invitation(self, token: str, *, client: str) -> InvitationView:
        """Return what an invitation is to.

        Raises:
            RefusedError: as `sign_in_with_invitation`.
        """
        self._take_try(client)
        found = invitation_with(self._state, token)
        self._tries.give_back(client)
        return found

    def _let_in(self, person: Person, client: str) -> OpenedSession:
        with self._state.writing() as rows:
            opened = self.sessions.open(rows, person)
        self._tries.give_back(client)
        return opened

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
