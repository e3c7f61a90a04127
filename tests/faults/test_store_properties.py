"""Rows by content hash, whatever is written, merged, cut or reopened: what was stored is there, or known to be missing."""

import shutil
import tempfile
from pathlib import Path

import numpy as np
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from weakspot.store.array_files import KEY_TYPE
from weakspot.store.embeddings import EmbeddingCache

WIDTH = 3
NUMBERS = st.lists(st.integers(0, 40), min_size=1, max_size=6)


def keys_of(numbers):
    return np.array(
        [number.to_bytes(np.dtype(KEY_TYPE).itemsize, "big") for number in numbers], dtype=KEY_TYPE
    )


def rows_of(numbers):
    return np.array([[number, number / 7, -number] for number in numbers], dtype=np.float32)


class Caching(RuleBasedStateMachine):
    """A cache beside a plain set of the keys that it must hold."""

    def __init__(self):
        super().__init__()
        self.folder = Path(tempfile.mkdtemp())
        self.stored = {}
        self.open()

    def teardown(self):
        shutil.rmtree(self.folder)

    def open(self):
        self.cache = EmbeddingCache(self.folder / "cache", identity="model")

    @rule()
    def reopen(self):
        self.open()

    @rule(numbers=NUMBERS)
    def append(self, numbers):
        before = set(self.shards())
        self.cache.append(keys_of(numbers), rows_of(numbers))
        (new,) = set(self.shards()) - before
        for number in numbers:
            self.stored.setdefault(number, set()).add(new)

    @rule(times=st.integers(16, 20))
    def many_small_parts_are_merged(self, times):
        for number in range(times):
            self.cache.append(keys_of([number]), rows_of([number]))
        self.cache.compact()
        known = set(self.stored) | set(range(times))
        self.stored = {number: self.holders(number) for number in known}

    @rule(data=st.data(), share=st.floats(0.0, 0.99))
    def a_part_is_cut_short(self, data, share):
        if shards := self.shards():
            lost = data.draw(st.sampled_from(shards))
            content = lost.read_bytes()
            lost.write_bytes(content[: int(share * len(content))])
            self.forget(lost)

    @rule(data=st.data())
    def a_byte_changes(self, data):
        if shards := self.shards():
            lost = data.draw(st.sampled_from(shards))
            content = bytearray(lost.read_bytes())
            content[data.draw(st.integers(128, len(content) - 1))] ^= 1
            lost.write_bytes(bytes(content))
            self.forget(lost)

    @rule()
    def a_writer_is_killed(self):
        (self.folder / "cache").mkdir(exist_ok=True)
        (self.folder / "cache" / "shard-000099-00000000.npy.tmp-abcd").write_bytes(b"half")
        self.open()

    @invariant()
    def everything_stored_is_there_and_nothing_else(self):
        numbers = list(range(41))
        is_missing = self.cache.missing(keys_of(numbers))
        assert {number for number in numbers if not is_missing[number]} == set(self.stored)
        matrix = self.cache.materialise(keys_of(numbers), width=WIDTH)
        assert matrix.n_missing == len(numbers) - len(self.stored)
        expected = rows_of(numbers)
        expected[is_missing] = np.nan
        np.testing.assert_array_equal(np.asarray(matrix.values), expected)

    def shards(self):
        return sorted((self.folder / "cache").glob("shard-*.npy"))

    def holders(self, number):
        return {path for path in self.shards() if keys_of([number])[0] in np.load(path)["key"]}

    def forget(self, lost):
        self.stored = {
            number: rest for number, holders in self.stored.items() if (rest := holders - {lost})
        }
        self.open()


Caching.TestCase.settings = settings(max_examples=25, stateful_step_count=12, deadline=None)
TestCaching = Caching.TestCase
