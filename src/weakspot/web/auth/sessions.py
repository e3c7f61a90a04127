"""Sessions: who a browser belongs to. The browser holds a random token; the state holds only its hash."""

import hmac
import secrets
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta

from sqlalchemy import delete
from sqlalchemy.orm import Session

from weakspot.web.roles import Person, Role
from weakspot.web.state.store import StateStore, now
from weakspot.web.state.tables import PersonRow, SessionRow, token_hash

LIFETIME = timedelta(days=7)
SEEN_AGAIN_AFTER = timedelta(minutes=10)
REMEMBERED_SECONDS = 2.0
MOST_REMEMBERED = 4096


@dataclass(frozen=True, kw_only=True)
class OpenedSession:
    """A new session.

    Args:
        token: for the cookie.
        csrf_token: for the header of changing requests.
        person: who signed in.
    """

    token: str
    csrf_token: str
    person: Person


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

    def open(self, rows: Session, person: Person) -> OpenedSession:
        secret, today = secrets.token_urlsafe(32), now()
        rows.execute(delete(SessionRow).where(SessionRow.expires < today))
        rows.add(
            SessionRow(
                token_hash=token_hash(secret),
                person_id=person.person_id,
                created=today,
                last_seen=today,
                expires=today + LIFETIME,
            )
        )
        return OpenedSession(token=secret, csrf_token=csrf_token_of(secret), person=person)

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
            if len(self._remembered) > MOST_REMEMBERED:
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
            row = rows.get(SessionRow, key)
            if row is None:
                return False
            rows.delete(row)
        return True

    def _look_up(self, key: str) -> Person | None:
        today = now()
        with self._state.reading() as rows:
            row = rows.get(SessionRow, key)
            if row is None or row.expires < today:
                return None
            found = rows.get(PersonRow, row.person_id)
            last_seen = row.last_seen
        if found is None:
            return None
        if today - last_seen > SEEN_AGAIN_AFTER:
            self._mark_seen(key, today)
        return person_of_row(found)

    def _mark_seen(self, key: str, today: datetime) -> None:
        with self._state.writing() as rows:
            row = rows.get(SessionRow, key)
            if row is not None:
                row.last_seen, row.expires = today, today + LIFETIME


def person_of_row(row: PersonRow) -> Person:
    return Person(
        person_id=row.person_id, name=row.name, role=Role(row.role), study_id=row.study_id
    )
