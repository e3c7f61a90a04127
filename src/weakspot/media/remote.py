"""How remote files are read: patience, tries, the largest image, and the bound of the local cache.

Whoever reads an image may be a thread of this process, another process or a machine of a cluster. The environment says how it
reads, unless a block around it says otherwise; an engine built from settings puts such a block around the work of its workers.

Trying again: waits that grow, differ between locations, are the same in every run, and do what the server asks.
"""

import hashlib
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from pathlib import Path
from typing import TypeVar

from weakspot.core.errors import ConfigError, WeakspotError

MEGABYTES_VARIABLE, FOLDER_VARIABLE = "WEAKSPOT_CACHE_MEGABYTES", "WEAKSPOT_CACHE_FOLDER"
MEGABYTE = 1024 * 1024


@dataclass(frozen=True, kw_only=True)
class RemoteReading:
    """How remote files are read.

    Args:
        cache_megabytes: most that is kept of remote images on this machine; 0 keeps nothing.
        cache_folder: where; empty: `weakspot` in the user's cache folder.
        seconds: longest time for one image, all tries together; large ones get more.
        n_tries: how often an image is asked for before it is given up.
        first_wait: seconds before the second try; each further wait is twice as long.
        longest_wait: no wait is longer, unless the server asks for it.
        most_bytes: a larger image is not read.
        slowest_rate: bytes a second that a connection must at least reach.
    """

    cache_megabytes: int = 2048
    cache_folder: str = ""
    seconds: float = 60.0
    n_tries: int = 5
    first_wait: float = 0.25
    longest_wait: float = 15.0
    most_bytes: int = 512 * MEGABYTE
    slowest_rate: float = 256 * 1024.0

    @classmethod
    def from_environment(cls) -> "RemoteReading":
        """Return the settings that this process was given.

        Raises:
            ConfigError: if the bound of the cache is no whole number.
        """
        text = os.environ.get(MEGABYTES_VARIABLE, "")
        if text and not text.isdecimal():
            raise ConfigError(
                f"{MEGABYTES_VARIABLE} must be a whole number of megabytes.",
                given=text,
                fix="0 keeps nothing.",
            )
        folder = os.environ.get(FOLDER_VARIABLE, "")
        return cls(cache_folder=folder, **({"cache_megabytes": int(text)} if text else {}))

    @property
    def folder(self) -> Path:
        if self.cache_folder:
            return Path(self.cache_folder)
        return (
            Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "weakspot" / "images"
        )


_current: ContextVar[RemoteReading | None] = ContextVar("remote_reading", default=None)


def remote_reading() -> RemoteReading:
    """Return how remote files are read here and now: as the block around says, else as the environment says."""
    return _current.get() or RemoteReading.from_environment()


@contextmanager
def reading_as(reading: RemoteReading) -> Iterator[None]:
    """Read remote files in this way while the block runs, in this thread alone."""
    token = _current.set(reading)
    try:
        yield
    finally:
        _current.reset(token)


Given = TypeVar("Given")
_WITHOUT_CREDENTIALS = (
    "NoCredentialsError",
    "PartialCredentialsError",
    "DefaultCredentialsError",
    "ClientAuthenticationError",
)
_REFUSED = (401, 403)
_LASTING = (
    WeakspotError,
    ValueError,
    TypeError,
    ImportError,
    FileNotFoundError,
    PermissionError,
    IsADirectoryError,
    KeyError,
)


class PassingTroubleError(OSError):
    """Something that may be over when it is tried again.

    Args:
        message: what happened.
        wait: seconds that the server asks to wait; None if it asks for nothing.
    """

    def __init__(self, message: str, *, wait: float | None = None) -> None:
        super().__init__(message)
        self.wait = wait


class LastingTroubleError(ValueError):
    """Something that stays as it is however often it is tried."""


class TooLargeFileError(LastingTroubleError):
    """A file has more bytes than an image may have."""


class TooSlowError(LastingTroubleError):
    """The time for a file is over."""


@dataclass(frozen=True, kw_only=True)
class Tries:
    """Attempts at one location.

    Args:
        location: which; it decides by how much waits differ from those of others.
        reading: how often, how long.
    """

    location: str
    reading: RemoteReading

    def run(self, read: Callable[[float], Given]) -> Given:
        """Return what `read(seconds that are left)` gives; lasting errors and the last passing one are raised.

        Raises:
            TooSlowError: if the time for one location is over.
        """
        end = time.monotonic() + self.reading.seconds
        for attempt in range(1, self.reading.n_tries + 1):
            try:
                return read(max(end - time.monotonic(), 0.001))
            except _LASTING:
                raise
            except Exception as error:  # every file system of fsspec has errors of its own
                if attempt == self.reading.n_tries or is_refusal(error):
                    raise
                wait = self.wait_after(attempt, getattr(error, "wait", None))
                if time.monotonic() + wait >= end:
                    raise TooSlowError(
                        f"{error}; the next try would be too late: {self.reading.seconds:g} s are given"
                    ) from error
            time.sleep(wait)
        raise TooSlowError("it was never tried")

    def wait_after(self, attempt: int, asked: float | None = None) -> float:
        """Return the seconds to wait after an attempt, counted from 1."""
        usual = min(self.reading.first_wait * 2.0 ** (attempt - 1), self.reading.longest_wait)
        digest = hashlib.blake2b(
            f"{attempt} {self.location}".encode("utf-8", "surrogatepass"), digest_size=2
        ).digest()
        spread = usual * (0.5 + int.from_bytes(digest, "big") / 65536)
        return spread if asked is None else max(asked, spread)


def asked_wait(value: str | None, now: datetime | None = None) -> float | None:
    """Return the seconds that a header `Retry-After` means, a number or a date; None if it means nothing.

    >>> asked_wait("7"), asked_wait("soon")
    (7.0, None)
    """
    if value is None:
        return None
    if value.strip().isdecimal():
        return float(value)
    try:
        moment = parsedate_to_datetime(value)
    except ValueError:
        return None
    aware = moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)
    return max(0.0, (aware - (now or datetime.now(UTC))).total_seconds())


def is_refusal(error: Exception) -> bool:
    """Return whether an error of a file system says that credentials are missing or do not suffice."""
    names = {kind.__name__ for kind in type(error).__mro__}
    status = getattr(error, "status_code", None) or getattr(error, "code", None)
    return (
        bool(names & set(_WITHOUT_CREDENTIALS))
        or status in _REFUSED
        or str(error).startswith("Forbidden")
    )
