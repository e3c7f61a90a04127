import pytest

from weakspot.core.errors import ModelError
from weakspot.models.files import files_in, main_first, new_files, refuse_existing


def test_new_files__appear_at_the_end_only(tmp_path):
    folder = tmp_path / "a" / "out"
    with new_files(folder) as staging:
        (staging / "inner").mkdir()
        (staging / "inner" / "x").write_text("1")
        assert not folder.exists()
    assert [str(name) for name in files_in(folder)] == ["inner/x"]
    assert [path.name for path in folder.parent.iterdir()] == ["out"]


def test_new_files__join_what_is_there(tmp_path):
    (tmp_path / "out" / "inner").mkdir(parents=True)
    (tmp_path / "out" / "mine").write_text("mine")
    with new_files(tmp_path / "out") as staging:
        (staging / "inner").mkdir()
        (staging / "inner" / "x").write_text("1")
    assert [str(name) for name in files_in(tmp_path / "out")] == ["inner/x", "mine"]
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_new_files__nothing_is_left_after_an_error(tmp_path):
    def fail():
        with new_files(tmp_path / "out") as staging:
            (staging / "x").write_text("1")
            raise KeyError("any")

    with pytest.raises(KeyError):
        fail()
    assert list(tmp_path.iterdir()) == []


def test_new_files__files_that_came_meanwhile_are_kept(tmp_path):
    def write():
        with new_files(tmp_path / "out") as staging:
            (staging / "x").write_text("new")
            (staging / "y").write_text("new")
            (tmp_path / "out").mkdir()
            (tmp_path / "out" / "y").write_text("mine")

    with pytest.raises(ModelError, match="nothing is overwritten: y"):
        write()
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["y"]
    assert (tmp_path / "out" / "y").read_text() == "mine"


def test_new_files__folder_that_cannot_be_made(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(ModelError, match="cannot be written"), new_files(tmp_path / "file" / "out"):
        pass


def test_refuse_existing__lists_ten(tmp_path):
    names = [f"{number:02d}" for number in range(12)]
    for name in names:
        (tmp_path / name).touch()
    with pytest.raises(ModelError, match=r"00, 01, 02, 03, 04, 05, 06, 07, 08, 09 and 2 more"):
        refuse_existing(tmp_path, [*names, "other"])
    refuse_existing(tmp_path, ["other"])
    (tmp_path / "gone").symlink_to(tmp_path / "nowhere")
    with pytest.raises(ModelError, match="gone"):
        refuse_existing(tmp_path, ["gone"])


def test_main_first__order(tmp_path):
    from pathlib import Path

    assert main_first(tmp_path, [Path("a"), Path("c"), Path("b")], Path("c")) == (
        tmp_path / "c",
        tmp_path / "a",
        tmp_path / "b",
    )
