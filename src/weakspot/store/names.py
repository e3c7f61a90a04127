"""Folder names for model ids, and fixed-width keys for content hashes."""

import hashlib
import re

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from weakspot.core.arrays import AnyArray, ByteArray

HASH_BYTES = 16
HASH_DIGITS = 2 * HASH_BYTES
KEY_TYPE = f"S{HASH_BYTES}"
_NO_DIGIT = 255
_VALUE_OF_DIGIT = np.full(256, _NO_DIGIT, dtype=np.uint8)
_VALUE_OF_DIGIT[[ord(digit) for digit in "0123456789abcdef"]] = np.arange(16, dtype=np.uint8)


def folder_name(identity: str) -> str:
    """Return a readable folder name for an id of any length and characters; different ids give different names.

    >>> folder_name("embedded/vit-b-32@1")
    'embedded-vit-b-32-1-f450d3ff20'
    """
    readable = re.sub(r"[^A-Za-z0-9_.]+", "-", identity).strip("-.")[:40]
    return f"{readable}-{hashlib.sha256(identity.encode()).hexdigest()[:10]}"


def packed_hashes(hashes: pa.Array | pa.ChunkedArray) -> AnyArray:
    """Return hashes as an array [n] of 16 bytes each, which sorts and searches without Python objects.

    Strings that are not 32 hexadecimal digits are hashed first, so every string has a key.
    """
    chunks = hashes.chunks if isinstance(hashes, pa.ChunkedArray) else [hashes]
    packed = [_packed_chunk(chunk) for chunk in chunks if len(chunk)]
    return np.concatenate(packed) if packed else np.empty(0, dtype=KEY_TYPE)


def _packed_chunk(chunk: pa.Array) -> AnyArray:
    lengths = np.asarray(pc.fill_null(pc.binary_length(chunk), 0))
    if bool((lengths == HASH_DIGITS).all()):
        values = _VALUE_OF_DIGIT[_characters(chunk).reshape(len(chunk), HASH_DIGITS)]
        if values.max() != _NO_DIGIT:
            pairs = np.ascontiguousarray(values[:, ::2] << 4 | values[:, 1::2])
            return pairs.view(KEY_TYPE)[:, 0]
    return np.array(
        [
            hashlib.blake2b(str(text).encode(), digest_size=HASH_BYTES).digest()
            for text in chunk.to_pylist()
        ],
        KEY_TYPE,
    )


def _characters(chunk: pa.Array) -> ByteArray:
    _, offsets, characters = chunk.cast(pa.string()).buffers()
    bounds = np.frombuffer(offsets, dtype=np.int32)[chunk.offset : chunk.offset + len(chunk) + 1]
    return np.frombuffer(characters, dtype=np.uint8)[bounds[0] : bounds[-1]]
