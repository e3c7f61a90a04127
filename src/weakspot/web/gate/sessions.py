"""Sessions: who a browser belongs to. The browser holds a random token; the state holds only its hash."""

import hashlib
import hmac
import secrets
from dataclasses import dataclass
from datetime import timedelta

from weakspot.web.problems import RefusedError
from weakspot.web.roles import Person, Role
from weakspot.web.server_parts import ServerParts
from weakspot.web.state.store import now
from weakspot.web.state.tables import PersonRow, SessionRow

COOKIE = "weakspot-session"
OWNER_ID = "owner"
LIFETIME = timedelta(days=7)


@dataclass(frozen=True, kw_only=True)
class OpenedSession:
    """A new session.

    Args:
        token: for the cookie.
        request_token: for the header of changing requests.
        person: who came in.
    """

    token: str
    request_token: str
    person: Person


def token_hash(token: str) -> str:
    """Return what is stored of a token."""
    return hashlib.sha256(token.encode()).hexdigest()


def request_token_of(token: str) -> str:
    """Return the request token of a session: it follows from the session's own token, which no page can read."""
    return hmac.new(token.encode(), b"weakspot request token", "sha256").hexdigest()


def open_session(parts: ServerParts, token: str) -> OpenedSession:
    """Let the owner in.

    Raises:
        RefusedError: 401 if the token is not the owner's.
    """
    if not hmac.compare_digest(token.encode(), parts.owner_token.encode()):
        raise RefusedError(401, "This token lets nobody in.", fix="Open the newest address that `weakspot serve` printed.")
    with parts.state.writing() as rows:
        if rows.get(PersonRow, OWNER_ID) is None:
            rows.add(PersonRow(person_id=OWNER_ID, name="owner", role=Role.OWNER.value, created=now()))
            rows.flush()
        return new_session(rows, Person(person_id=OWNER_ID, name="owner", role=Role.OWNER))


def new_session(rows: "object", person: Person) -> OpenedSession:
    """Remember a new browser of a person."""
    secret, today = secrets.token_urlsafe(32), now()
    row = SessionRow(
        token_hash=token_hash(secret),
        person_id=person.person_id,
        csrf_hash=token_hash(request_token_of(secret)),
        created=today,
        last_seen=today,
        expires=today + LIFETIME,
    )
    rows.add(row)  # type: ignore[attr-defined]
    return OpenedSession(token=secret, request_token=request_token_of(secret), person=person)


def person_with(parts: ServerParts, token: str) -> Person | None:
    """Return who a session's token belongs to, None if to nobody."""
    with parts.state.reading() as rows:
        row = rows.get(SessionRow, token_hash(token))
        found = None if row is None or row.expires < now() else rows.get(PersonRow, row.person_id)
    if found is None:
        return None
    return Person(person_id=found.person_id, name=found.name, role=Role(found.role), study_id=found.study_id)
