import io
import struct
import zlib

import numpy as np
import pytest
from PIL import Image

from weakspot.data.images import (
    PIXEL_LIMIT,
    UnreadableImageError,
    decode_image,
    jpeg_at,
    jpeg_of,
)


def encoded(image: Image.Image, form: str, **options) -> bytes:
    buffer = io.BytesIO()
    image.save(buffer, form, **options)
    return buffer.getvalue()


def noise(width: int, height: int) -> Image.Image:
    return Image.fromarray(
        np.random.default_rng(0).integers(0, 256, (height, width, 3), dtype=np.uint8)
    )


def png_header(width: int, height: int) -> bytes:
    """Return a PNG of a few bytes that announces a size it does not have."""
    header = b"IHDR" + struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    body = b"IDAT" + zlib.compress(bytes(100))
    chunks = b"".join(
        struct.pack(">I", len(chunk) - 4) + chunk + struct.pack(">I", zlib.crc32(chunk))
        for chunk in (header, body, b"IEND")
    )
    return b"\x89PNG\r\n\x1a\n" + chunks


def reason_of(data: bytes, image_side: int | None = None) -> str:
    with pytest.raises(UnreadableImageError) as caught:
        decode_image(data, image_side=image_side)
    return caught.value.reason


@pytest.mark.parametrize(
    ("data", "name"),
    [
        (b"%PDF-1.7 ...", "PDF"),
        (b"\x00\x00\x00\x18ftypheic....", "HEIC"),
        (bytes(128) + b"DICM", "DICOM"),
        (b"8BPS....", "Photoshop"),
    ],
)
def test_decode_image__known_but_unsupported_formats_are_named(data, name):
    with pytest.raises(UnreadableImageError, match=name) as caught:
        decode_image(data)
    assert caught.value.reason == "unsupported"


@pytest.mark.parametrize("image_side", [None, 1, 8])
@pytest.mark.parametrize("share", [0.2, 0.5, 0.9, 0.99])
@pytest.mark.parametrize(
    ("form", "options"),
    [
        ("JPEG", {}),
        ("JPEG", {"progressive": True}),
        ("PNG", {}),
        ("GIF", {}),
        ("WEBP", {"lossless": True}),
        ("BMP", {}),
        ("TIFF", {}),
    ],
)
def test_decode_image__truncated(form, options, share, image_side):
    whole = encoded(noise(90, 60), form, **options)
    assert decode_image(whole, image_side=image_side).size[0] == 90
    assert reason_of(whole[: int(len(whole) * share)], image_side) == "truncated"


def test_decode_image__copy_that_was_padded_with_zeros():
    whole = encoded(noise(90, 60), "JPEG")
    half = len(whole) // 2
    assert reason_of(whole[:half] + bytes(half)) == "truncated"
    assert decode_image(whole + bytes(64)).size[0] == 90


def test_decode_image__announced_size_is_checked_before_decoding():
    with pytest.raises(UnreadableImageError, match="50000 x 50000") as caught:
        decode_image(png_header(50_000, 50_000))
    assert caught.value.reason == "too-large"


def test_decode_image__between_the_warning_of_pillow_and_our_limit_no_warning_escapes():
    # 10000 x 10000 is above Pillow's warning (89 megapixels); the body is short, so decoding ends at once.
    assert Image.MAX_IMAGE_PIXELS is not None
    assert Image.MAX_IMAGE_PIXELS < 100_000_000 < PIXEL_LIMIT
    assert reason_of(png_header(10_000, 10_000)) == "truncated"


@pytest.mark.parametrize(
    ("image_side", "size"),
    [
        (None, (400, 240)),
        (1, (50, 30)),
        (30, (50, 30)),
        (31, (100, 60)),
        (61, (200, 120)),
        (120, (200, 120)),
        (121, (400, 240)),
    ],
)
def test_decode_image__jpeg_scale_is_the_smallest_that_keeps_the_shorter_side(image_side, size):
    decoded = decode_image(encoded(noise(400, 240), "JPEG"), image_side=image_side)
    assert decoded.image.size == size
    assert decoded.size == (400, 240)


# Where the pixel that is stored top left (red) and the one stored top right (blue) stand when the image is upright.
CORNERS = {
    1: ((0, 0), (1, 0)),
    2: ((1, 0), (0, 0)),
    3: ((1, 1), (0, 1)),
    4: ((0, 1), (1, 1)),
    5: ((0, 0), (0, 1)),
    6: ((1, 0), (1, 1)),
    7: ((1, 1), (1, 0)),
    8: ((0, 1), (0, 0)),
}


@pytest.mark.parametrize("form", ["JPEG", "PNG", "WEBP", "TIFF"])
@pytest.mark.parametrize("orientation", range(1, 9))
def test_decode_image__exif_orientation(orientation, form):
    stored = Image.new("RGB", (48, 32), "white")
    stored.paste((255, 0, 0), (0, 0, 16, 16))
    stored.paste((0, 0, 255), (32, 0, 48, 16))
    exif = Image.Exif()
    exif[0x0112] = orientation
    decoded = decode_image(encoded(stored, form, exif=exif))
    assert decoded.size == ((48, 32) if orientation < 5 else (32, 48))
    assert decoded.image.size == decoded.size
    assert decoded.notes == (() if orientation == 1 else ("exif-rotated",))
    ends = ((4, decoded.size[0] - 5), (4, decoded.size[1] - 5))
    red, blue = (decoded.image.getpixel((ends[0][x], ends[1][y])) for x, y in CORNERS[orientation])
    assert red[0] > 200
    assert red[2] < 60
    assert blue[2] > 200
    assert blue[0] < 60


def test_decode_image__scaled_and_turned():
    exif = Image.Exif()
    exif[0x0112] = 6
    decoded = decode_image(encoded(noise(400, 240), "JPEG", exif=exif), image_side=30)
    assert decoded.image.size == (30, 50)
    assert decoded.size == (240, 400)


def test_decode_image__damaged_exif_does_not_matter():
    whole = encoded(noise(20, 10), "JPEG", exif=b"Exif\x00\x00II*\x00\xff\xff\xff\xff")
    assert decode_image(whole).notes == ()


def test_decode_image__cmyk_jpeg_as_adobe_writes_it():
    # Ink values 0 %, 100 %, 100 %, 0 % are red on paper; Adobe stores them inverted.
    data = encoded(Image.new("CMYK", (16, 16), (0, 255, 255, 0)), "JPEG", quality=95)
    assert b"Adobe" in data
    decoded = decode_image(data)
    assert decoded.notes == ("cmyk",)
    assert np.allclose(decoded.image.getpixel((8, 8)), (255, 0, 0), atol=6)
    assert decode_image(data, image_side=2).image.size == (2, 2)


def test_decode_image__sixteen_bit_png_is_scaled_not_clipped():
    values = np.array([[0, 257, 32896, 65535]], dtype=np.uint16)
    decoded = decode_image(encoded(Image.fromarray(values), "PNG"))
    assert decoded.notes == ("16-bit",)
    assert np.asarray(decoded.image)[0].tolist() == [
        [0, 0, 0],
        [1, 1, 1],
        [128, 128, 128],
        [255, 255, 255],
    ]


def test_decode_image__float_and_32_bit_tiff():
    unit = encoded(Image.fromarray(np.array([[0.0, 0.5, 1.0]], dtype=np.float32)), "TIFF")
    assert np.asarray(decode_image(unit).image)[0, :, 0].tolist() == [0, 128, 255]
    wide = encoded(Image.fromarray(np.array([[-100000, 0, 100000]], dtype=np.int32)), "TIFF")
    decoded = decode_image(wide)
    assert np.asarray(decoded.image)[0, :, 0].tolist() == [0, 128, 255]
    assert decoded.notes == ("32-bit", "range-stretched")


def test_decode_image__palette_with_transparency_is_laid_on_white():
    image = Image.new("P", (2, 1))
    image.putpalette([200, 0, 0, 0, 200, 0])
    image.putdata([0, 1])
    decoded = decode_image(encoded(image, "PNG", transparency=bytes([255, 0])))
    assert [decoded.image.getpixel((column, 0)) for column in (0, 1)] == [
        (200, 0, 0),
        (255, 255, 255),
    ]
    assert decoded.notes == ("transparent",)


def test_decode_image__half_transparent_black_on_white_is_grey():
    decoded = decode_image(encoded(Image.new("RGBA", (1, 1), (0, 0, 0, 128)), "PNG"))
    assert decoded.image.getpixel((0, 0)) == (127, 127, 127)
    opaque = decode_image(encoded(Image.new("RGBA", (1, 1), (9, 8, 7, 255)), "PNG"))
    assert (opaque.image.getpixel((0, 0)), opaque.notes) == ((9, 8, 7), ())


@pytest.mark.parametrize("form", ["GIF", "WEBP", "PNG"])
def test_decode_image__animated_gives_the_first_frame(form):
    frames = [
        Image.new("RGB", (8, 8), colour) for colour in ((255, 0, 0), (0, 255, 0), (0, 0, 255))
    ]
    options = {"lossless": True} if form == "WEBP" else {}
    decoded = decode_image(
        encoded(frames[0], form, save_all=True, append_images=frames[1:], duration=50, **options)
    )
    assert decoded.notes == ("animated",)
    assert decoded.image.getpixel((4, 4)) == (255, 0, 0)


def test_decode_image__pages_of_a_tiff():
    pages = [Image.new("RGB", (8, 8), colour) for colour in ((255, 0, 0), (0, 255, 0))]
    decoded = decode_image(encoded(pages[0], "TIFF", save_all=True, append_images=pages[1:]))
    assert (decoded.notes, decoded.image.getpixel((0, 0))) == (("multi-page",), (255, 0, 0))


@pytest.fixture
def image(tmp_path):
    path = tmp_path / "wide.png"
    Image.new("RGB", (300, 120), (200, 40, 40)).save(path)
    return path


def test_jpeg_of__wide_image__fits_into_the_side_and_keeps_its_shape(image):
    small = Image.open(io.BytesIO(jpeg_of(image.read_bytes(), 100)))
    assert (small.format, small.size) == ("JPEG", (100, 40))


def test_jpeg_at__location__gives_the_same(image):
    assert jpeg_at(str(image), 64) == jpeg_of(image.read_bytes(), 64)


def test_jpeg_at__nothing_that_can_be_read__is_none(tmp_path):
    broken = tmp_path / "broken.png"
    broken.write_bytes(b"")
    assert [jpeg_at(one, 64) for one in (None, str(tmp_path / "gone.png"), str(broken))] == [
        None,
        None,
        None,
    ]
