"""People with a login: owners that the command line makes, and those who accepted an invitation; passwords are kept as argon2 hashes."""

import secrets
import threading
import unicodedata
from functools import cache

from argon2 import PasswordHasher
from argon2.exceptions import Argon2Error, InvalidHashError
from sqlalchemy import delete, func, select
from sqlalchemy.orm import Session

from weakspot.core.errors import ConfigError
from weakspot.web.roles import Role
from weakspot.web.state.store import StateStore, now
from weakspot.web.state.tables import PersonRow, SessionRow

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


LONGEST_NAME = 100
OWNER_ID = "owner"
OWNER_NAME = "owner"


def clean_name(text: str) -> str:
    r"""Return a name without what cannot be seen; empty if nothing is left.

    >>> clean_name("  Ada\x00  Lovelace\n")
    'Ada Lovelace'
    """
    seen = "".join(
        " " if character.isspace() else character for character in text if _is_seen(character)
    )
    return " ".join(unicodedata.normalize("NFC", seen).split())[:LONGEST_NAME]


def login_of(text: str) -> str:
    """Return a login as it is kept: the name without its case, so that nobody can sign in as a look-alike."""
    return unicodedata.normalize("NFKC", clean_name(text)).casefold()


def person_by_login(rows: Session, text: str) -> PersonRow | None:
    login = login_of(text)
    return (
        rows.scalars(select(PersonRow).where(PersonRow.login == login)).one_or_none()
        if login
        else None
    )


def has_owner_with_password(state: StateStore) -> bool:
    asked = select(func.count()).where(
        PersonRow.role == Role.OWNER.value, PersonRow.password_hash.is_not(None)
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
        row = person_by_login(rows, shown)
        if row is None:
            fresh = PersonRow(
                person_id=secrets.token_urlsafe(12),
                name=shown,
                login=login_of(shown),
                created=now(),
            )
            fresh.role, fresh.password_hash = Role.OWNER.value, kept
            rows.add(fresh)
        elif row.role != Role.OWNER.value:
            raise ConfigError(
                "This name belongs to somebody who was invited.",
                where="--set-password",
                given=shown,
            )
        else:
            row.password_hash = kept
            rows.execute(delete(SessionRow).where(SessionRow.person_id == row.person_id))
    return shown


def owner_row(rows: Session) -> PersonRow:
    row = rows.get(PersonRow, OWNER_ID)
    if row is None:
        row = PersonRow(person_id=OWNER_ID, name=OWNER_NAME, role=Role.OWNER.value, created=now())
        rows.add(row)
        rows.flush()
    return row


def _is_seen(character: str) -> bool:
    return character.isspace() or unicodedata.category(character)[0] != "C"
