"""People with a login: owners that the command line makes, and those whom an invitation let in."""

import secrets
import unicodedata

from sqlalchemy import delete, func, select
from sqlalchemy.orm import Session

from weakspot.core.errors import ConfigError
from weakspot.web.gate.passwords import hashed
from weakspot.web.roles import Role
from weakspot.web.state.store import StateStore, now
from weakspot.web.state.tables import PersonRow, SessionRow

LONGEST_NAME = 100
OWNER_ID = "owner"
OWNER_NAME = "owner"


def clean_name(text: str) -> str:
    r"""Return a name without what cannot be seen; empty if nothing is left.

    >>> clean_name("  Ada\x00  Lovelace\n")
    'Ada Lovelace'
    """
    seen = "".join(" " if character.isspace() else character for character in text if _is_seen(character))
    return " ".join(unicodedata.normalize("NFC", seen).split())[:LONGEST_NAME]


def login_of(text: str) -> str:
    """Return a login as it is kept: the name without its case, so that nobody can come in as a look-alike."""
    return unicodedata.normalize("NFKC", clean_name(text)).casefold()


def person_by_login(rows: Session, text: str) -> PersonRow | None:
    """Return who has a login."""
    login = login_of(text)
    return rows.scalars(select(PersonRow).where(PersonRow.login == login)).one_or_none() if login else None


def has_owner_with_password(state: StateStore) -> bool:
    """Return whether an owner can come in with a password."""
    asked = select(func.count()).where(PersonRow.role == Role.OWNER.value, PersonRow.password_hash.is_not(None))
    with state.reading() as rows:
        return bool(rows.scalar(asked))


def set_owner_password(state: StateStore, name: str, password: str) -> str:
    """Make an owner, or give one another password; their browsers have to come in again.

    Raises:
        ConfigError: if the name is empty or belongs to somebody who is no owner, or the password is too short.
    """
    shown, kept = clean_name(name), hashed(password)
    if not login_of(shown):
        raise ConfigError("An owner needs a name.", where="--set-password", given=name)
    with state.writing() as rows:
        row = person_by_login(rows, shown)
        if row is None:
            fresh = PersonRow(person_id=secrets.token_urlsafe(12), name=shown, login=login_of(shown), created=now())
            fresh.role, fresh.password_hash = Role.OWNER.value, kept
            rows.add(fresh)
        elif row.role != Role.OWNER.value:
            raise ConfigError("This name belongs to somebody who was invited.", where="--set-password", given=shown)
        else:
            row.password_hash = kept
            rows.execute(delete(SessionRow).where(SessionRow.person_id == row.person_id))
    return shown


def owner_row(rows: Session) -> PersonRow:
    """Return the person behind the owner's token."""
    row = rows.get(PersonRow, OWNER_ID)
    if row is None:
        row = PersonRow(person_id=OWNER_ID, name=OWNER_NAME, role=Role.OWNER.value, created=now())
        rows.add(row)
        rows.flush()
    return row


def _is_seen(character: str) -> bool:
    return character.isspace() or unicodedata.category(character)[0] != "C"
