import os

import pytest

from weakspot.media.sorted_names import sorted_names

NAMES = ["a", "a.b", "a-b", "B", "z\nz", "é", "10", "9", "a b", os.fsdecode(b"raw\xff")]


@pytest.mark.parametrize("run_length", [1, 2, 3, 100])
def test_sorted_names__same_order_from_memory_and_from_disk(tmp_path, run_length):
    for name in NAMES:
        (tmp_path / name).touch()
    (tmp_path / ".hidden").touch()
    (tmp_path / "a.folder").mkdir()
    found = list(sorted_names(str(tmp_path), run_length=run_length))
    assert [name for name, _ in found] == sorted([*NAMES, "a.folder"])
    assert [name for name, is_folder in found if is_folder] == ["a.folder"]


def test_sorted_names__many_blocks(tmp_path):
    names = [f"{number:03d}{'x' * 200}" for number in range(700)]
    for name in names:
        (tmp_path / name).touch()
    assert [name for name, _ in sorted_names(str(tmp_path), run_length=400)] == names


def test_sorted_names__no_such_folder(tmp_path):
    with pytest.raises(FileNotFoundError):
        list(sorted_names(str(tmp_path / "none")))
