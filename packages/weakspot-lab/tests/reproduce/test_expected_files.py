import pytest

from weakspot.core.errors import DataError
from weakspot_lab.reproduce.expected_files import DataSet, require_data

BIRDS = DataSet(name="Birds", files={"metadata.csv": "the list"})
FACES = DataSet(
    name="Faces",
    files={"list.txt": "labels", "images_*": "photographs"},
)


def test_require_data__the_first_that_is_whole(tmp_path):
    (tmp_path / "list.txt").touch()
    (tmp_path / "images_001").mkdir()
    assert require_data(tmp_path, [BIRDS, FACES], paper="p") is FACES
    (tmp_path / "metadata.csv").touch()
    assert require_data(tmp_path, [BIRDS, FACES], paper="p") is BIRDS


def test_require_data__says_what_is_missing(tmp_path):
    (tmp_path / "list.txt").touch()
    with pytest.raises(DataError) as caught:
        require_data(tmp_path, [FACES], paper="p")
    assert caught.value.given == ["images_*"]
    assert "photographs" in caught.value.fix
    assert caught.value.exit_code == 2


def test_require_data__no_folder(tmp_path):
    with pytest.raises(DataError, match="needs data") as caught:
        require_data(None, [BIRDS, FACES], paper="p")
    assert "--stand-in" in caught.value.fix
    with pytest.raises(DataError, match="no such folder"):
        require_data(tmp_path / "nowhere", [BIRDS], paper="p")


def test_require_data__only_sets_that_are_begun_are_told_of(tmp_path):
    (tmp_path / "list.txt").touch()
    with pytest.raises(DataError, match="Files of Faces are") as caught:
        require_data(tmp_path, [BIRDS, FACES], paper="p")
    assert "metadata.csv" not in caught.value.fix
    other = DataSet(name="Other", files={"list.txt": "labels", "other.txt": "more"})
    with pytest.raises(DataError, match="Files of Faces or of Other are") as caught:
        require_data(tmp_path, [BIRDS, FACES, other], paper="p")
    assert caught.value.given == ["images_*", "other.txt"]


def test_require_data__a_folder_of_something_else_is_told_of_every_set(tmp_path):
    with pytest.raises(DataError, match="no file of a data set of p") as caught:
        require_data(tmp_path, [BIRDS, FACES], paper="p")
    assert "metadata.csv" in caught.value.fix
    assert "list.txt" in caught.value.fix
