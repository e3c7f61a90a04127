import pytest
from tests.neighbours.made_bundle import made_bundle

from weakspot.core.errors import DataError
from weakspot.media.locations import read_location
from weakspot.neighbours.picture_files import picture_paths


def test_picture_paths__the_same_bytes_wherever_they_were(tmp_path):
    bundle = made_bundle(tmp_path / "pictures")
    locations = bundle.samples.dataset.locations()
    for changed in (bundle, made_bundle(tmp_path / "pictures", copies_pictures=True)):
        paths = picture_paths(changed, tmp_path / "out")
        assert [read_location(path) for path in paths] == [read_location(location) for location in locations]
    assert sorted(path.suffix for path in (tmp_path / "out" / "pictures").iterdir()) == [".png"] * 8


def test_picture_paths__written_once(tmp_path):
    bundle = made_bundle(tmp_path / "pictures")
    (path,) = picture_paths(bundle, tmp_path / "out", [1])
    stamp = (tmp_path / "out" / "pictures").stat().st_mtime_ns
    (tmp_path / "pictures" / "pack.bin").unlink()
    assert picture_paths(bundle, tmp_path / "out", [1]) == [path]
    assert (tmp_path / "out" / "pictures").stat().st_mtime_ns == stamp


@pytest.mark.parametrize(("row", "copies", "gone"), [(1, False, "pack.bin"), (0, True, "0.png")])
def test_picture_paths__picture_that_is_gone(tmp_path, row, copies, gone):
    bundle = made_bundle(tmp_path / "pictures", copies_pictures=copies)
    (tmp_path / "pictures" / gone).unlink()
    with pytest.raises(DataError):
        picture_paths(bundle, tmp_path / "out", [row])
