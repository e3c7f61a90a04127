"""Images from strangers: real processes with real limits."""

import os
import struct
import zlib
from io import BytesIO

import pytest
from PIL import Image

from weakspot.data.bounded_decoding import MAX_BYTES, decode_bounded
from weakspot.data.images import UnreadableImageError


def _encoded(kind: str = "PNG", size: tuple[int, int] = (40, 20), **options) -> bytes:
    stream = BytesIO()
    Image.new("RGB", size, (10, 200, 30)).save(stream, kind, **options)
    return stream.getvalue()


def _png(side: int, rows: bytes) -> bytes:
    def chunk(name: bytes, data: bytes) -> bytes:
        return (
            struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))
        )

    header = struct.pack(">IIBBBBB", side, side, 8, 2, 0, 0, 0)
    return (
        b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", rows) + chunk(b"IEND", b"")
    )


def _bomb(side: int) -> bytes:
    packer, row = zlib.compressobj(9), bytes(1 + 3 * side)
    return _png(side, b"".join(packer.compress(row) for _ in range(side)) + packer.flush())


def _reason(data: bytes, **limits) -> str:
    with pytest.raises(UnreadableImageError) as refused:
        decode_bounded(data, **limits)
    return refused.value.reason


@pytest.mark.parametrize("kind", ["PNG", "JPEG", "WEBP", "GIF"])
def test_decode_bounded__good_image__its_pixels(kind):
    image = decode_bounded(_encoded(kind))
    assert (image.mode, image.size) == ("RGB", (40, 20))
    assert all(
        abs(one - other) < 12
        for one, other in zip(image.getpixel((20, 10)), (10, 200, 30), strict=True)
    )


def test_decode_bounded__large_image__made_smaller():
    assert decode_bounded(_encoded(size=(400, 100)), longest_side=80).size == (80, 20)


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "zero-bytes"),
        (b"plain text", "not-an-image"),
        (b"<?xml version='1.0'?><svg/>", "not-an-image"),
        (b"<svg onload='x'/>", "unsupported"),
        (b"%!PS", "unsupported"),
        (_encoded()[:60], "truncated"),
        (_png(2**30, b""), "too-large"),
        (b"GIF89a/*" + b"<script>alert(1)</script>" * 9, "damaged"),
    ],
    ids=["empty", "text", "xml", "svg", "postscript", "cut off", "huge", "page"],
)
def test_decode_bounded__no_image__said(data, reason):
    assert _reason(data) == reason


def test_decode_bounded__bomb__runs_out_of_its_own_memory_only():
    assert _reason(_bomb(9000), megabytes=300) == "too-large"


def test_decode_bounded__takes_too_long__ended():
    assert _reason(_bomb(9000), seconds=0.05) == "too-large"


def test_decode_bounded__too_many_bytes__not_even_started():
    assert _reason(bytes(MAX_BYTES + 1)) == "too-large"


def test_decode_bounded__secrets_of_the_server__not_passed_on(monkeypatch, tmp_path):
    spy = tmp_path / "spy.py"
    spy.write_text(
        "#!/bin/sh\nenv > "
        + str(tmp_path / "seen")
        + "\nls /proc/self/fd | wc -l >> "
        + str(tmp_path / "seen")
        + "\n"
    )
    spy.chmod(0o700)
    monkeypatch.setenv("WEAKSPOT_TOKEN", "a secret of the server")
    monkeypatch.setattr("sys.executable", str(spy))
    with open(os.devnull, "rb") as stream:
        os.set_inheritable(stream.fileno(), True)
        assert _reason(_encoded()) == "damaged"
    seen = (tmp_path / "seen").read_text()
    assert "a secret of the server" not in seen
    assert int(seen.split()[-1]) <= 4
