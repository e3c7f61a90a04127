import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from weakspot.store.key_index import ODD, KeyIndex
from weakspot.store.names import KEY_TYPE

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
        halves = np.array([[number * ODD ^ np.uint64(5), number] for number in np.arange(50, dtype=np.uint64)])
    keys = np.ascontiguousarray(halves).view(KEY_TYPE)[:, 0]
    assert KeyIndex(keys[:40]).positions(keys).tolist() == [*range(40), *[-1] * 10]


def test_positions__keys_inside_records():
    records = np.zeros(3, dtype=[("key", KEY_TYPE), ("row", np.float32, (2,))])
    records["key"] = [b"a" * 16, b"b" * 16, b"c" * 16]
    assert KeyIndex(records["key"]).positions(records["key"][::-1]).tolist() == [2, 1, 0]
