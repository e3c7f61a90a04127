import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from weakspot.store.array_files import (
    CHECKED_FILE,
    KEY_TYPE,
    ODD,
    KeyIndex,
    Shard,
    mark_of,
    read_checked,
    write_checked,
)


@pytest.fixture
def written(tmp_path):
    shards = [
        ("one", (5, 7), 3, [b"a" * 16, b"b" * 16]),
        ("empty", (1, 1), 3, []),
        ("two", (6, 8), 4, [b"c" * 16]),
    ]
    write_checked(
        tmp_path,
        [
            Shard(path=tmp_path / name, mark=mark, width=width, keys=np.array(keys, dtype=KEY_TYPE))
            for name, mark, width, keys in shards
        ],
    )
    return tmp_path / CHECKED_FILE


def test_read_checked__what_was_written(written):
    found = read_checked(written.parent)
    assert {name: (one.mark, one.width, one.keys.tolist()) for name, one in found.items()} == {
        "one": ((5, 7), 3, [b"a" * 16, b"b" * 16]),
        "empty": ((1, 1), 3, []),
        "two": ((6, 8), 4, [b"c" * 16]),
    }


@pytest.mark.parametrize("harm", ["cut", "flip", "width", "empty", "text", "gone"])
def test_read_checked__damaged_is_nothing(written, harm):
    content = written.read_bytes()
    flipped = content[:-3] + bytes([content[-3] ^ 1]) + content[-2:]
    wider = content.replace(b'"width": 4', b'"width": 5')
    harmed = {
        "cut": content[:-16],
        "flip": flipped,
        "width": wider,
        "empty": b"",
        "text": b"hello\n",
    }
    written.write_bytes(harmed.get(harm, b""))
    if harm == "gone":
        written.unlink()
    assert read_checked(written.parent) == {}


def test_mark_of__no_file(tmp_path):
    assert mark_of(tmp_path / "none") == (-1, -1)


SPECIAL = st.sampled_from([b"\0" * 16, b"a" * 16, b"a" * 15 + b"\0"])
KEYS = st.lists(st.binary(min_size=16, max_size=16) | SPECIAL, max_size=40)


def packed(keys):
    return np.frombuffer(b"".join(keys), dtype=KEY_TYPE)


@settings(deadline=None)
@given(KEYS, KEYS)
def test_positions__like_a_list(known, others):
    asked = [*others, *known[::2]]
    expected = [known.index(key) if key in known else -1 for key in asked]
    assert KeyIndex(packed(known)).positions(packed(asked)).tolist() == expected


def test_positions__different_keys_that_mix_to_the_same_number():
    with np.errstate(over="ignore"):
        halves = np.array(
            [[number * ODD ^ np.uint64(5), number] for number in np.arange(50, dtype=np.uint64)]
        )
    keys = np.ascontiguousarray(halves).view(KEY_TYPE)[:, 0]
    assert KeyIndex(keys[:40]).positions(keys).tolist() == [*range(40), *[-1] * 10]
