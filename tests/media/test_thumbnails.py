import io

import pytest
from PIL import Image

from weakspot.media.pictures import UnreadablePictureError
from weakspot.media.thumbnails import jpeg_at, jpeg_of


@pytest.fixture
def picture(tmp_path):
    path = tmp_path / "wide.png"
    Image.new("RGB", (300, 120), (200, 40, 40)).save(path)
    return path


def test_jpeg_of__wide_picture__fits_into_the_side_and_keeps_its_shape(picture):
    small = Image.open(io.BytesIO(jpeg_of(picture.read_bytes(), 100)))
    assert (small.format, small.size) == ("JPEG", (100, 40))


def test_jpeg_of__no_picture__is_an_error():
    with pytest.raises(UnreadablePictureError):
        jpeg_of(b"words", 100)


def test_jpeg_at__location__gives_the_same(picture):
    assert jpeg_at(str(picture), 64) == jpeg_of(picture.read_bytes(), 64)


def test_jpeg_at__nothing_that_can_be_read__is_none(tmp_path):
    broken = tmp_path / "broken.png"
    broken.write_bytes(b"")
    assert [jpeg_at(one, 64) for one in (None, str(tmp_path / "gone.png"), str(broken))] == [None, None, None]
