"""Passwords: kept as argon2 hashes, and checked for as long when the login is not known at all."""

import threading
from functools import cache

from argon2 import PasswordHasher
from argon2.exceptions import Argon2Error, InvalidHashError

from weakspot.core.errors import ConfigError

SHORTEST = 8
LONGEST = 1000
# A hash takes 64 MiB while it is made; a crowd at the door must not take all memory.
_AT_ONCE = threading.BoundedSemaphore(2)


def hashed(password: str) -> str:
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
