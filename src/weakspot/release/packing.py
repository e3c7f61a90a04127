"""Many numbers or yes/no answers inside a JSON file, compressed; damage is noticed when they are read."""

import base64
import binascii
import zlib
from typing import Any

import numpy as np
from pydantic import Field

from weakspot.core.arrays import AnyArray, BoolArray
from weakspot.core.errors import StoreError
from weakspot.core.record import Record

KEY_BYTES = 8


class PackedBits(Record):
    """Yes or no for each of many samples.

    >>> PackedBits.of(np.array([True, False, True])).values.tolist()
    [True, False, True]
    """

    count: int = Field(ge=0)
    data: str = Field(repr=False)

    @classmethod
    def of(cls, values: AnyArray) -> "PackedBits":
        """Pack yes/no answers."""
        return cls(
            count=len(values),
            data=_pack(np.packbits(np.asarray(values, dtype=np.bool_)).tobytes()),
        )

    @property
    def values(self) -> BoolArray:
        """Return the answers.

        Raises:
            StoreError: if they are damaged.
        """
        content = _unpack(self.data, (self.count + 7) // 8)
        bits = np.unpackbits(np.frombuffer(content, dtype=np.uint8), count=self.count)
        return np.asarray(bits, dtype=np.bool_)


class PackedKeys(Record):
    """Short keys of many samples: the first 64 bits of their content hashes."""

    count: int = Field(ge=0)
    data: str = Field(repr=False)

    @classmethod
    def of(cls, hashes: list[str]) -> "PackedKeys":
        """Pack content hashes, each a text of hexadecimal digits."""
        content = b"".join(bytes.fromhex(one[: 2 * KEY_BYTES]) for one in hashes)
        return cls(count=len(hashes), data=_pack(content))

    @property
    def values(self) -> np.ndarray[Any, np.dtype[np.uint64]]:
        """Return the keys as numbers.

        Raises:
            StoreError: if they are damaged.
        """
        return np.frombuffer(_unpack(self.data, self.count * KEY_BYTES), dtype=">u8").astype(
            np.uint64
        )


def _pack(content: bytes) -> str:
    return base64.b64encode(zlib.compress(content, 6)).decode("ascii")


def _unpack(data: str, size: int) -> bytes:
    """Return the content, which must have this size; never more is unpacked, whatever a file says."""
    try:
        reader = zlib.decompressobj()
        content = reader.decompress(base64.b64decode(data, validate=True), size + 1)
    except (binascii.Error, ValueError, zlib.error) as error:
        raise _damaged(str(error)) from error
    if len(content) != size or not reader.eof:
        raise _damaged("its parts do not fit together")
    return content


def _damaged(why: str) -> StoreError:
    return StoreError(
        f"The baseline is damaged: {why}.",
        fix="Write it again with `weakspot check --write-baseline`.",
    )
