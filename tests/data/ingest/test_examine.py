import io

import numpy as np
from PIL import Image

from weakspot.core.dataset import ExaminedSample, RawSample
from weakspot.data.examine import QUARANTINE_REASONS, examine
from weakspot.data.images import content_hash


def jpeg(width=80, height=48, **options):
    pixels = np.random.default_rng(0).integers(0, 256, (height, width, 3), dtype=np.uint8)
    buffer = io.BytesIO()
    Image.fromarray(pixels).save(buffer, "JPEG", **options)
    return buffer.getvalue()


def test_examine__good_image_from_a_file(tmp_path):
    exif = Image.Exif()
    exif[0x0112] = 6
    data = jpeg(exif=exif)
    (tmp_path / "a.jpg").write_bytes(data)
    raw = RawSample(key="a", location=str(tmp_path / "a.jpg"), labels=("cat",))
    assert examine(raw) == ExaminedSample(
        raw=raw, content_hash=content_hash(data), width=48, height=80, notes=("exif-rotated",)
    )


def test_examine__every_kind_of_bad_file_is_quarantined_with_its_reason(tmp_path):
    files = {
        "zero-bytes": b"",
        "not-an-image": b"only text",
        "unsupported": b"%PDF-1.4",
        "truncated": jpeg()[:-500],
        "damaged": b"\x89PNG\r\n\x1a\n" + bytes(60),
    }
    for reason, content in files.items():
        (tmp_path / f"{reason}.jpg").write_bytes(content)
        found = examine(RawSample(key="k", location=str(tmp_path / f"{reason}.jpg")))
        assert isinstance(found, RawSample)
        assert (found.reason, found.key, found.location) == (
            reason,
            "k",
            str(tmp_path / f"{reason}.jpg"),
        )
        assert found.detail
        assert reason in QUARANTINE_REASONS


def test_examine__places_that_cannot_be_read(tmp_path):
    (tmp_path / "a.jpg").write_bytes(b"abc")
    locations = {
        "missing-file": str(tmp_path / "gone.jpg"),
        "not-a-file": str(tmp_path),
        "bad-range": f"{tmp_path}/a.jpg#bytes=1-9",
        "unreachable": "nosuchscheme://a.jpg",
    }
    for reason, location in locations.items():
        found = examine(RawSample(key="k", location=location))
        assert isinstance(found, RawSample)
        assert found.reason == reason
        assert reason in QUARANTINE_REASONS


def test_examine__no_image_is_hashed_over_what_was_said():
    raw = RawSample(key="row 1", labels=("cat",), predictions=("dog",))
    found = examine(raw)
    assert isinstance(found, ExaminedSample)
    assert (len(found.content_hash), found.width, found.height) == (32, 0, 0)
    others = [
        RawSample(key="row 2", labels=("cat",), predictions=("dog",)),
        RawSample(key="row 1", labels=("dog",), predictions=("dog",)),
        RawSample(key="row 1", labels=("cat",), predictions=None),
        RawSample(key="row 1", labels=("cat",), predictions=("dog",), probabilities={"cat": 0.5}),
    ]
    assert len({examine(other).content_hash for other in others} | {found.content_hash}) == 5
    assert examine(raw).content_hash == found.content_hash
