import base64
import zlib

import numpy as np
import pytest

from weakspot.core.errors import StoreError
from weakspot.gate.baseline import Packed


@pytest.mark.parametrize("count", [0, 1, 7, 8, 9, 1000])
def test_packed_bits__come_back_as_they_were(count):
    bits = np.random.default_rng(count).random(count) < 0.3
    assert Packed.of_bits(bits).bits.tolist() == bits.tolist()


def test_packed_keys__are_the_beginning_of_hashes():
    keys = Packed.of_hashes(["00000000000000ff" + 16 * "0", "ffffffffffffffff"])
    assert keys.keys.tolist() == [255, 2**64 - 1]


@pytest.mark.parametrize(
    "data",
    [
        "no base64!",
        base64.b64encode(b"no zlib").decode(),
        base64.b64encode(zlib.compress(b"too long for eight")).decode(),
        base64.b64encode(zlib.compress(b"")).decode(),
        base64.b64encode(zlib.compress(b"\x00")[:-2]).decode(),
    ],
)
def test_packed_bits__damage_is_noticed(data):
    with pytest.raises(StoreError, match="damaged"):
        _ = Packed(count=8, data=data).bits


def test_packed_bits__a_file_that_would_swell_is_not_unpacked():
    bomb = base64.b64encode(zlib.compress(bytes(100_000_000))).decode()
    with pytest.raises(StoreError, match="do not fit"):
        _ = Packed(count=64, data=bomb).bits
