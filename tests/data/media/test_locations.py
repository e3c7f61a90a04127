import zipfile

import fsspec
import pytest

from weakspot.core.errors import UnavailableError
from weakspot.data.locations import (
    UnreadableLocationError,
    is_local,
    join_location,
    parent_location,
    range_location,
    read_location,
    shown_location,
    split_range,
)

ALPHABET = b"abcdefghijklmnopqrstuvwxyz"


@pytest.fixture
def letters(tmp_path):
    path = tmp_path / "letters with blank.bin"
    path.write_bytes(ALPHABET)
    return path


def reason_of(location: str) -> str:
    with pytest.raises(UnreadableLocationError) as caught:
        read_location(location)
    assert isinstance(caught.value, UnavailableError)
    assert caught.value.where
    assert caught.value.fix
    return caught.value.reason


def test_read_location__local_path_and_file_url(letters):
    assert read_location(str(letters)) == ALPHABET
    assert read_location(letters.as_uri()) == ALPHABET


def test_read_location__range(letters):
    assert read_location(range_location(str(letters), offset=2, length=3)) == b"cde"
    assert read_location(range_location(str(letters), offset=0, length=0)) == b""


def test_read_location__range_beyond_the_end(letters):
    assert reason_of(range_location(str(letters), offset=24, length=3)) == "bad-range"


def test_read_location__missing_folder_and_null_character(tmp_path):
    assert reason_of(str(tmp_path / "nothing.jpg")) == "missing-file"
    assert reason_of(str(tmp_path)) == "not-a-file"
    assert reason_of("a\x00b.jpg") == "unreachable"


def test_read_location__memory_and_zip(tmp_path):
    with fsspec.open("memory://weakspot-test/letters.bin", "wb") as file:
        file.write(ALPHABET)
    assert read_location("memory://weakspot-test/letters.bin") == ALPHABET
    assert read_location("memory://weakspot-test/letters.bin#bytes=1-2") == b"bc"
    assert reason_of("memory://weakspot-test/other.bin") == "missing-file"
    with zipfile.ZipFile(tmp_path / "all.zip", "w") as archive:
        archive.writestr("inner/letters.bin", ALPHABET)
    assert read_location(f"zip://inner/letters.bin::{tmp_path / 'all.zip'}") == ALPHABET
    assert reason_of(f"zip://inner/other.bin::{tmp_path / 'all.zip'}") == "missing-file"


def test_shown_location__hides_what_is_secret():
    assert (
        shown_location("https://me:word@example.org/a.jpg?signature=abc#bytes=1-2")
        == "https://example.org/a.jpg#bytes=1-2"
    )
    assert shown_location("/data/a.jpg") == "/data/a.jpg"


@pytest.mark.parametrize(
    ("folder", "relative", "expected"),
    [
        ("/data", "a/b.jpg", "/data/a/b.jpg"),
        ("/data", "/else/b.jpg", "/else/b.jpg"),
        ("/data", "https://example.org/b.jpg", "https://example.org/b.jpg"),
        ("s3://bucket/set", "a/b.jpg", "s3://bucket/set/a/b.jpg"),
        ("zip://inner::all.zip", "b.jpg", "zip://inner/b.jpg::all.zip"),
    ],
)
def test_join_location__cases(folder, relative, expected):
    assert join_location(folder, relative) == expected


def test_parent_location__local_and_remote():
    assert parent_location("/data/set/table.csv") == "/data/set"
    assert parent_location("s3://bucket/set/table.csv") == "s3://bucket/set"


def test_split_range__only_at_the_end():
    assert split_range("a#bytes=1-2.jpg") == ("a#bytes=1-2.jpg", None)


def test_is_local__windows_drive_and_urls():
    assert is_local("C:/images/a.jpg")
    assert is_local("file:///a.jpg")
    assert not is_local("memory://a.jpg")
    assert not is_local("zip://a.jpg::b.zip")
