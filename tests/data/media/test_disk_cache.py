import os
import subprocess
import sys

import pytest
from tests.loopback_servers import web_folder

from weakspot.data.locations import read_anew, read_location
from weakspot.data.remote import (
    COUNTER_NAME,
    ENTRY_SUFFIX,
    HEAD_BYTES,
    DiskCache,
    RemoteReading,
    reading_as,
)

KEPT = 1000 + HEAD_BYTES
WRITER = """
import sys
from pathlib import Path
from weakspot.data.remote import DiskCache
cache = DiskCache(folder=Path(sys.argv[1]), most_bytes=200_000)
for number in range(300):
    cache.put(f"{sys.argv[2]} {number}", bytes([number % 256]) * 1000)
    found = cache.get(f"{sys.argv[2]} {number // 2}")
    assert found is None or found == bytes([number // 2 % 256]) * 1000
"""


@pytest.fixture
def cache(tmp_path):
    return DiskCache(folder=tmp_path / "cache", most_bytes=10 * KEPT)


def files(cache):
    return sorted(cache.folder.rglob(f"*{ENTRY_SUFFIX}"))


def aged(cache, location, seconds):
    path = cache._path(location)
    os.utime(path, (path.stat().st_mtime - seconds,) * 2)


def test_get__what_was_put(cache):
    assert cache.get("s3://bucket/a") is None
    cache.put("s3://bucket/a", b"content")
    cache.put("s3://bucket/\udc80", b"other")
    assert cache.get("s3://bucket/a") == b"content"
    assert cache.get("s3://bucket/\udc80") == b"other"


def test_put__least_recently_used_goes_first(cache):
    for number in range(10):
        cache.put(str(number), bytes(1000))
        aged(cache, str(number), 100 - number)
    assert cache.get("0") is not None
    cache.put("new", bytes(1000))
    assert cache.n_bytes <= cache.most_bytes
    assert cache.get("0") is not None
    assert cache.get("new") is not None
    assert cache.get("1") is None


def test_put__a_image_that_would_take_a_quarter_is_not_kept(cache):
    cache.put("large", bytes(cache.most_bytes // 2))
    assert cache.get("large") is None


@pytest.mark.parametrize("damage", [b"", b"short", None])
def test_get__a_damaged_file_is_no_answer_and_goes(cache, damage):
    cache.put("a", b"content" * 50)
    (path,) = files(cache)
    stored = bytearray(path.read_bytes())
    stored[-3] ^= 1
    path.write_bytes(bytes(stored) if damage is None else damage)
    assert cache.get("a") is None
    assert files(cache) == []
    cache.put("a", b"content")
    assert cache.get("a") == b"content"


@pytest.mark.parametrize("damage", [b"", b"xyz", b"\xff" * 8, b"\x00" * 8])
def test_put__a_damaged_counter_is_counted_anew_or_harmless(cache, damage):
    for number in range(8):
        cache.put(str(number), bytes(1000))
    (cache.folder / COUNTER_NAME).write_bytes(damage)
    for number in range(40):
        cache.put(f"more {number}", bytes(1000))
    assert cache.n_bytes <= cache.most_bytes + 10 * KEPT


def test_put__what_an_interrupted_write_left_goes_with_time(cache):
    cache.put("a", bytes(1000))
    left = files(cache)[0].with_name("left.image.abcd")
    left.write_bytes(bytes(3 * KEPT))
    os.utime(left, (1, 1))
    (cache.folder / COUNTER_NAME).unlink()
    for number in range(12):
        cache.put(str(number), bytes(1000))
    assert not left.exists()


def test_cache__a_folder_that_cannot_be_made(tmp_path):
    (tmp_path / "file").write_text("not a folder")
    cache = DiskCache(folder=tmp_path / "file" / "cache", most_bytes=10_000)
    cache.put("a", b"content")
    assert cache.get("a") is None


def test_cache__processes_at_the_same_time_stay_within_the_bound(tmp_path):
    writers = [
        subprocess.Popen([sys.executable, "-c", WRITER, str(tmp_path), name])
        for name in ("one", "two")
    ]
    assert [writer.wait() for writer in writers] == [0, 0]
    assert DiskCache(folder=tmp_path, most_bytes=200_000).n_bytes <= 200_000


def test_read_location__a_remote_image_is_fetched_once(tmp_path):
    with web_folder() as folder, reading_as(RemoteReading(cache_folder=str(tmp_path / "cache"))):
        folder.put("a.jpg", b"first")
        where = f"{folder.address}/a.jpg"
        assert [read_anew(where), read_location(where), read_location(where)] == [b"first"] * 3
        assert folder.seen["GET /a.jpg"] == 1
        folder.put("a.jpg", b"second")
        assert read_location(where) == b"first"
        assert read_anew(where) == b"second"
        assert read_location(where) == b"second"
        assert folder.seen["GET /a.jpg"] == 2
