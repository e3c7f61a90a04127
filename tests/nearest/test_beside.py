import os

import pytest

from weakspot.core.errors import StoreError
from weakspot.nearest.beside import mark_of, replacing


def test_mark_of__another_mark_for_another_content_of_the_same_size_and_time(tmp_path):
    path = tmp_path / "file"
    path.write_bytes(b"a" * 200_000)
    os.utime(path, ns=(5, 5))
    first = mark_of(path)
    path.write_bytes(b"b" * 200_000)
    os.utime(path, ns=(5, 5))
    assert mark_of(path) != first
    path.write_bytes(b"")
    assert mark_of(path).startswith("0-")


def test_replacing__all_or_nothing(tmp_path):
    path = tmp_path / "file"
    path.write_bytes(b"old")
    with pytest.raises(TypeError), replacing(path) as temporary:
        temporary.write_bytes(b"half", "another argument")
    assert path.read_bytes() == b"old"
    with replacing(path) as temporary:
        temporary.write_bytes(b"new")
    assert path.read_bytes() == b"new"
    assert os.listdir(tmp_path) == ["file"]
    with pytest.raises(StoreError, match="cannot be written"), replacing(tmp_path / "none" / "file") as temporary:
        temporary.write_bytes(b"new")
