import pytest
from PIL import Image

from weakspot.core.errors import ConfigError
from weakspot.run.reporting import written


def test_written__bytes_as_they_are_and_images_as_png(tmp_path):
    text, image = written(
        tmp_path / "new" / "folder", {"a.txt": b"words", "b.png": Image.new("RGB", (3, 2), "red")}
    )
    assert text.read_bytes() == b"words"
    with Image.open(image) as found:
        assert found.size == (3, 2)


def test_written__a_folder_that_cannot_be_made_is_named(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(ConfigError, match="cannot be written"):
        written(tmp_path / "file" / "below", {"a.txt": b""})
