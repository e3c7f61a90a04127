import os

import fsspec
import pytest

from weakspot.core.errors import UnavailableError
from weakspot.data.locations import (
    UnreadableLocationError,
    file_facts,
    is_folder,
    is_there,
    list_files,
    match_files,
    sorted_names,
)

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


@pytest.fixture
def tree(tmp_path):
    for name in ("b/2.txt", "b/1.txt", "a/x/3.txt", ".hidden/4.txt", "a/.secret"):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(name)
    return tmp_path


def test_list_files__sorted_without_hidden_ones(tree):
    assert [file.relative for file in list_files(str(tree))] == ["a/x/3.txt", "b/1.txt", "b/2.txt"]
    assert [file.size for file in list_files(str(tree))] == [9, 7, 7]


def test_list_files__a_link_to_above_ends(tree):
    (tree / "a" / "up").symlink_to(tree)
    names = [file.relative for file in list_files(str(tree))]
    assert names == ["a/x/3.txt", "b/1.txt", "b/2.txt"]


def test_list_files__a_link_to_nowhere_is_listed(tree):
    (tree / "b" / "3.txt").symlink_to(tree / "gone")
    assert [(file.relative, file.size) for file in list_files(str(tree))][-1] == ("b/3.txt", -1)


def test_list_files__memory():
    for name in ("b.txt", "a/c.txt", ".d/e.txt"):
        with fsspec.open(f"memory://listing/{name}", "wb") as file:
            file.write(b"12")
    found = list(list_files("memory://listing"))
    assert [(file.relative, file.size, file.location) for file in found] == [
        ("a/c.txt", 2, "memory://listing/a/c.txt"),
        ("b.txt", 2, "memory://listing/b.txt"),
    ]
    assert is_folder("memory://listing")
    assert not is_there("memory://listing/none")


def test_list_files__nothing_there(tmp_path):
    with pytest.raises(UnavailableError, match="cannot be listed"):
        list(list_files(str(tmp_path / "none")))


def test_match_files__sorted(tree):
    assert match_files(f"{tree}/b/*.txt") == [f"{tree}/b/1.txt", f"{tree}/b/2.txt"]


def test_file_facts__changes_with_the_file(tree):
    before = file_facts(f"{tree}/b/1.txt")
    (tree / "b" / "1.txt").write_text("longer than before")
    assert file_facts(f"{tree}/b/1.txt") != before
    with pytest.raises(UnreadableLocationError):
        file_facts(f"{tree}/b/9.txt")
