import numpy as np

from weakspot.store import atomic
from weakspot.store.texts import MANY_SHARDS, TextCache, text_cache, text_keys

KEYS = text_keys(["one", "two", "three"])


def _cache(folder):
    return TextCache(folder / "captions", identity="captioner@1")


def test_texts__in_the_order_of_keys(tmp_path):
    cache = _cache(tmp_path)
    cache.append(KEYS, ["a dog", "", "größer 🐕"])
    for again in (cache, _cache(tmp_path)):
        assert again.texts(KEYS[[2, 0, 1, 0]]) == ["größer 🐕", "a dog", "", "a dog"]
        assert again.missing(KEYS).tolist() == [False, False, False]


def test_append__first_text_of_a_key_stays(tmp_path):
    cache = _cache(tmp_path)
    cache.append(KEYS[:1], ["first"])
    cache.append(KEYS[:1], ["second"])
    assert cache.texts(KEYS[:1]) == _cache(tmp_path).texts(KEYS[:1]) == ["first"]


def test_append__many_small_files_become_one(tmp_path):
    cache = _cache(tmp_path)
    names = [str(number) for number in range(2 * MANY_SHARDS + 3)]
    for name in names:
        cache.append(text_keys([name]), [f"text {name}"])
    assert len(list((tmp_path / "captions").glob("shard-*"))) < MANY_SHARDS
    assert (
        cache.texts(text_keys(names))
        == _cache(tmp_path).texts(text_keys(names))
        == [f"text {name}" for name in names]
    )


def test_append__two_writers_one_after_the_other(tmp_path):
    first, second = _cache(tmp_path), _cache(tmp_path)
    first.append(KEYS[:1], ["one"])
    second.append(KEYS[1:2], ["two"])
    assert _cache(tmp_path).texts(KEYS) == ["one", "two", None]


def test_texts__damaged_file_is_removed_and_its_texts_are_missing(tmp_path):
    cache = _cache(tmp_path)
    cache.append(KEYS[:1], ["one"])
    cache.append(KEYS[1:], ["two", "three"])
    paths = sorted((tmp_path / "captions").glob("shard-*"))
    paths[1].write_bytes(paths[1].read_bytes()[:-20])
    (tmp_path / "captions" / "shard-000007-00000000.arrow").write_bytes(b"rubbish")
    (tmp_path / "captions" / "shard-strange.arrow").write_bytes(b"")
    again = _cache(tmp_path)
    assert again.texts(KEYS) == ["one", None, None]
    assert sorted((tmp_path / "captions").glob("shard-*")) == paths[:1]
    again.append(KEYS[1:], ["2", "3"])
    assert _cache(tmp_path).texts(KEYS) == ["one", "2", "3"]


def test_append__says_whose_texts_they_are(tmp_path):
    cache = text_cache(tmp_path, "endpoint:host/v1:model@1 what colour?")
    cache.append(KEYS[:1], ["red"])
    assert atomic.read_json(cache.folder / "model.json") == {
        "id": "endpoint:host/v1:model@1 what colour?"
    }
    assert cache.folder.parent == tmp_path / "texts"
    assert text_cache(tmp_path, "endpoint:host/v1:model@1 what size?").texts(KEYS[:1]) == [None]


def test_text_keys__one_each_also_for_keys_that_end_in_zero_bytes(tmp_path):
    hashes = ["ab" * 15 + "00", "00" * 16, "cd" * 16]
    keys = text_keys(hashes)
    cache = _cache(tmp_path)
    cache.append(keys, ["x", "y", "z"])
    assert _cache(tmp_path).texts(keys) == ["x", "y", "z"]
    assert len(np.unique(text_keys(["a", "b", "a"]))) == 2
