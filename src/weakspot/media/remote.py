"""How remote files are read: patience, tries, the largest picture, and the bound of the local cache.

Whoever reads a picture may be a thread of this process, another process or a machine of a cluster, and gets only its location. So
the settings are a property of the process: read from its environment when first needed, and inherited by every process that
it starts. An engine whose workers inherit nothing passes `RemoteReading.environment` on.
"""

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from weakspot.core.errors import ConfigError

MEGABYTES_VARIABLE, FOLDER_VARIABLE = "WEAKSPOT_CACHE_MEGABYTES", "WEAKSPOT_CACHE_FOLDER"
MEGABYTE = 1024 * 1024


@dataclass(frozen=True, kw_only=True)
class RemoteReading:
    """How remote files are read.

    Args:
        cache_megabytes: most that is kept of remote pictures on this machine; 0 keeps nothing.
        cache_folder: where; empty: `weakspot` in the user's cache folder.
        seconds: longest time for one picture, all tries together; large ones get more (see `seconds_for`).
        n_tries: how often a picture is asked for before it is given up.
        first_wait: seconds before the second try; each further wait is twice as long.
        longest_wait: no wait is longer, unless the server asks for it.
        most_bytes: a larger picture is not read.
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
            raise ConfigError(f"{MEGABYTES_VARIABLE} must be a whole number of megabytes.", given=text, fix="0 keeps nothing.")
        folder = os.environ.get(FOLDER_VARIABLE, "")
        return cls(cache_folder=folder, **({"cache_megabytes": int(text)} if text else {}))

    @property
    def environment(self) -> Mapping[str, str]:
        """Return what a worker must find in its environment to keep pictures as this process does."""
        return {MEGABYTES_VARIABLE: str(self.cache_megabytes), FOLDER_VARIABLE: self.cache_folder}

    @property
    def folder(self) -> Path:
        """Return the folder of the cache."""
        if self.cache_folder:
            return Path(self.cache_folder)
        return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "weakspot" / "pictures"

    def seconds_for(self, n_bytes: int) -> float:
        """Return how long so many bytes may take."""
        return self.seconds + n_bytes / self.slowest_rate


_chosen: list[RemoteReading] = []


def remote_reading() -> RemoteReading:
    """Return how this process reads remote files."""
    if not _chosen:
        _chosen.append(RemoteReading.from_environment())
    return _chosen[0]


def choose(reading: RemoteReading) -> None:
    """Read remote files in this way from now on, in this process and in those that it starts."""
    os.environ.update(reading.environment)
    _chosen[:] = [reading]


@contextmanager
def reading_as(reading: RemoteReading) -> Iterator[None]:
    """Read remote files in this way while the block runs."""
    before, environment = list(_chosen), {name: os.environ.get(name) for name in reading.environment}
    choose(reading)
    try:
        yield
    finally:
        _chosen[:] = before
        for name, value in environment.items():
            os.environ.pop(name, None)
            if value is not None:
                os.environ[name] = value
