import io

import pytest
from PIL import Image

from weakspot.data.images import CAMERA_BITS, decode_image, moment_of


def _exif(taken="2024:05:01 10:00:03", model="EOS 5"):
    exif = Image.Exif()
    if model:
        exif[0x0110] = model
    if taken:
        exif.get_ifd(0x8769)[0x9003] = taken
    return exif


def _encoded(exif):
    buffer = io.BytesIO()
    Image.new("RGB", (16, 16)).save(buffer, "JPEG", exif=exif)
    return buffer.getvalue()


def test_moment_of__seconds_and_camera():
    first = moment_of(_exif().tobytes())
    later = moment_of(_exif("2024:05:01 10:00:05").tobytes())
    assert first >> CAMERA_BITS == 1_714_557_603
    assert (later >> CAMERA_BITS) - (first >> CAMERA_BITS) == 2
    camera = (1 << CAMERA_BITS) - 1
    assert later & camera == first & camera
    for other in ("EOS 6", "5", ""):
        assert moment_of(_exif(model=other).tobytes()) & camera != first & camera


def test_moment_of__big_endian_blocks():
    """One text in the second directory, told by the first."""
    text = b"2024:05:01 10:00:03\0"
    first = b"\0\x01" + b"\x87\x69\0\x04\0\0\0\x01\0\0\0\x1a" + bytes(4)
    second = b"\0\x01" + b"\x90\x03\0\x02\0\0\0\x14\0\0\0\x2c" + bytes(4)
    block = b"MM\0\x2a\0\0\0\x08" + first + second + text
    assert moment_of(block) >> CAMERA_BITS == 1_714_557_603


@pytest.mark.parametrize(
    "block",
    [
        b"",
        b"Exif\0\0",
        b"II*\0",
        b"no block at all",
        _exif(taken=None).tobytes(),
        _exif("0000:00:00 00:00:00").tobytes(),
    ],
)
def test_moment_of__nothing_told(block):
    assert moment_of(block) == 0


@pytest.mark.parametrize("n_bytes", range(0, 120, 7))
def test_moment_of__a_block_that_ends_early(n_bytes):
    whole = _exif().tobytes()
    assert moment_of(whole[:n_bytes]) >= 0


def test_decode_image__tells_the_moment_at_every_scale():
    data = _encoded(_exif())
    assert decode_image(data).moment == decode_image(data, image_side=1).moment
    assert decode_image(data).moment == moment_of(_exif().tobytes())
    assert decode_image(_encoded(Image.Exif())).moment == 0
