import pytest
from tests.tools.made_bundle import made_bundle

from weakspot.core.errors import DataError
from weakspot.data.locations import read_location
from weakspot.tools.files import image_paths


def test_image_paths__the_same_bytes_wherever_they_were(tmp_path):
    bundle = made_bundle(tmp_path / "images")
    locations = bundle.samples.dataset.locations()
    for changed in (bundle, made_bundle(tmp_path / "images", copies_images=True)):
        paths = image_paths(changed, tmp_path / "out")
        assert [read_location(path) for path in paths] == [
            read_location(location) for location in locations
        ]
    assert sorted(path.suffix for path in (tmp_path / "out" / "images").iterdir()) == [".png"] * 8


def test_image_paths__written_once(tmp_path):
    bundle = made_bundle(tmp_path / "images")
    (path,) = image_paths(bundle, tmp_path / "out", [1])
    stamp = (tmp_path / "out" / "images").stat().st_mtime_ns
    (tmp_path / "images" / "pack.bin").unlink()
    assert image_paths(bundle, tmp_path / "out", [1]) == [path]
    assert (tmp_path / "out" / "images").stat().st_mtime_ns == stamp


@pytest.mark.parametrize(("row", "copies", "gone"), [(1, False, "pack.bin"), (0, True, "0.png")])
def test_image_paths__image_that_is_gone(tmp_path, row, copies, gone):
    bundle = made_bundle(tmp_path / "images", copies_images=copies)
    (tmp_path / "images" / gone).unlink()
    with pytest.raises(DataError):
        image_paths(bundle, tmp_path / "out", [row])
