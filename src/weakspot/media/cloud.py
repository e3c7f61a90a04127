"""File systems of fsspec: object stores (S3, GCS, Azure), archives, and whatever else it knows.

Credentials come from where each library looks for them: environment, profile, metadata of the machine. None are kept or shown.
"""

import re
from typing import Any

from weakspot.core.errors import MissingExtraError, UnavailableError
from weakspot.media.remote import MEGABYTE, RemoteReading, TooLargeFileError, TooSlowError

CLOUD_SCHEMES = {
    "s3": "s3fs",
    "s3a": "s3fs",
    "gs": "gcsfs",
    "gcs": "gcsfs",
    "az": "adlfs",
    "abfs": "adlfs",
    "abfss": "adlfs",
}
EXTRA = "cloud"
EXPECTED_BYTES = 32 * MEGABYTE
_BAD_RANGE = re.compile(r"\b416\b|range", re.IGNORECASE)


def is_cloud(location: str) -> bool:
    return (
        location.partition("://")[0] in CLOUD_SCHEMES and "://" in location and "::" not in location
    )


def file_system(location: str) -> tuple[Any, str]:
    """Return the file system of a location and its path there.

    Raises:
        UnavailableError: if there is no such file system.
        MissingExtraError: if its library is not installed.
    """
    from fsspec.core import url_to_fs

    try:
        system, path = url_to_fs(location)
    except ImportError as error:
        library = CLOUD_SCHEMES.get(location.partition("://")[0])
        if library is None:
            raise UnavailableError(
                f"The location cannot be opened: {error}.",
                fix="Install the library that is named there.",
            ) from error
        raise MissingExtraError(
            library,
            extra=EXTRA,
            purpose=f"Locations that begin with {location.partition('://')[0]}://",
        ) from error
    except ValueError as error:
        raise UnavailableError(
            f"The location cannot be opened: {error}.", fix="Correct the address."
        ) from error
    return system, str(path)


def read_bytes(
    location: str, *, offset: int, length: int | None, reading: RemoteReading, seconds: float
) -> bytes:
    """Return the bytes at a location, or a range of them, read once.

    Raises:
        TooLargeFileError: it is more than an image may be.
        TooSlowError: it takes too long.
        Exception: whatever the file system raises.
    """
    system, path = file_system(location)
    most = reading.most_bytes + 1 if length is None else length
    if not getattr(system, "async_impl", False):
        data = bytes(
            system.cat_file(path)
            if length is None
            else system.cat_file(path, start=offset, end=offset + length)
        )
    else:
        data = _called_off_in_time(
            system,
            path,
            (offset, offset + most),
            seconds + (length or EXPECTED_BYTES) / reading.slowest_rate,
        )
    if length is None and len(data) > reading.most_bytes:
        raise TooLargeFileError(f"more than {reading.most_bytes:,} bytes")
    return data


def _called_off_in_time(system: Any, path: str, ends: tuple[int, int], seconds: float) -> bytes:
    """Return a range; of a whole file, a range that is longer than any image, which spares the question for its size."""
    from fsspec.asyn import sync

    try:
        return bytes(
            sync(  # the public call has no time limit
                system.loop,
                system._cat_file,  # noqa: SLF001
                path,
                start=ends[0],
                end=ends[1],
                timeout=seconds,
            )
        )
    except TimeoutError as error:
        raise TooSlowError(f"it took longer than {seconds:g} s") from error
    except Exception as error:
        # Of an empty file no store gives a range.
        if ends[0] == 0 and _BAD_RANGE.search(str(error)) and system.info(path).get("size") == 0:
            return b""
        raise
