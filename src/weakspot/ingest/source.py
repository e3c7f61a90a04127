"""What every source of samples can do.

Hashes that change when a source does.
"""

import hashlib
import json
from collections.abc import Iterable, Iterator
from typing import Protocol, runtime_checkable

import pyarrow as pa

from weakspot.core.dataset import RawSample
from weakspot.media.listing import ListedFile, file_facts
from weakspot.media.locations import explained, open_location


@runtime_checkable
class SampleSource(Protocol):
    """Samples in an order that never changes, read as a stream.

    Reading needs memory for a bounded number of samples, and can begin again anywhere, so that a killed run goes on.
    """

    @property
    def kind(self) -> str:
        """Which kind of source it is, for example `image-folder`."""

    @property
    def location(self) -> str:
        """Where it is, for people."""

    def fingerprint(self) -> str:
        """Return 32 hexadecimal digits that change when the source does."""

    def count(self) -> int | None:
        """Return the number of samples, or None when only reading to the end can tell."""

    def read(self, start: int = 0) -> Iterator[RawSample]:
        """Yield samples from position `start` on.

        Raises:
            DataError: listing everything that is wrong with the source, before the first sample.
        """


@runtime_checkable
class ExaminedSource(SampleSource, Protocol):
    """A source without any image: nothing has to be read to examine its samples."""

    def read_examined(self, start: int = 0) -> Iterator[pa.Table]:
        """Yield samples from position `start` on as tables of the `EXAMINED_SCHEMA`; they hold what `examine` says of `read`.

        Raises:
            DataError: as `read`.
        """


CONTENT_LIMIT_BYTES = 256 * 1024 * 1024
_BLOCK_BYTES = 1024 * 1024
_HASH_BYTES = 16


def fingerprint_of_listing(files: Iterable[ListedFile], *settings: object) -> str:
    """Return a hash over paths, sizes and times of change, and over how they are read."""
    digest = hashlib.blake2b(_encode(settings), digest_size=_HASH_BYTES)
    for file in files:
        digest.update(_encode((file.relative, file.size, file.stamp)))
    return digest.hexdigest()


def fingerprint_of_files(locations: Iterable[str], *settings: object) -> str:
    """Return a hash over the content of files; of huge files, over size and time of change."""
    digest = hashlib.blake2b(_encode(settings), digest_size=_HASH_BYTES)
    for location in locations:
        facts = file_facts(location)
        if 0 <= facts.size <= CONTENT_LIMIT_BYTES:
            digest.update(_content_digest(location))
        else:
            digest.update(_encode((facts.relative, facts.size, facts.stamp)))
    return digest.hexdigest()


def fingerprint_of_values(values: Iterable[object]) -> str:
    """Return a hash over values in memory, each bytes or printable."""
    digest = hashlib.blake2b(digest_size=_HASH_BYTES)
    for value in values:
        digest.update(value if isinstance(value, bytes) else _encode(value))
    return digest.hexdigest()


def _content_digest(location: str) -> bytes:
    digest = hashlib.blake2b(digest_size=_HASH_BYTES)
    with open_location(location) as file:
        try:
            while block := file.read(_BLOCK_BYTES):
                digest.update(block)
        except OSError as error:
            raise explained(error, location) from error
    return digest.digest()


def _encode(value: object) -> bytes:
    return json.dumps(value, sort_keys=True, default=str).encode() + b"\n"
