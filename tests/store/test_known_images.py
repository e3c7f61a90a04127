import pyarrow as pa
import pytest

from weakspot.core.dataset import ExaminedSample, RawSample
from weakspot.store import images
from weakspot.store.images import KNOWN_COLUMNS, PACK_SCHEME, write_known


def table(rows):
    """Return rows of (location, number, stamp, reason) as an examined table."""
    columns = {
        "location": pa.array([row[0] for row in rows], pa.string()),
        "content_hash": pa.array(
            [None if row[3] else f"{row[1]:032x}" for row in rows], pa.string()
        ),
        "width": pa.array([row[1] for row in rows], pa.int32()),
        "height": pa.array([row[1] + 1 for row in rows], pa.int32()),
        "notes": pa.array([["cmyk"] * (row[1] % 3) for row in rows], pa.list_(pa.string())),
        "stamp": pa.array([row[2] for row in rows], pa.string()),
        "reason": pa.array([row[3] for row in rows], pa.string()),
        "moment": pa.array([None] * len(rows), pa.int64()),
    }
    return pa.table(columns).select(list(KNOWN_COLUMNS))


def _width(image):
    return image.examined(RawSample(key="any")).width


@pytest.mark.parametrize("bucket_rows", [1, 40, 1 << 18])
def test_at__every_location_in_any_number_of_drawers(tmp_path, monkeypatch, bucket_rows):
    monkeypatch.setattr(images, "BUCKET_ROWS", bucket_rows)
    rows = [(f"/data/{number}.jpg", number, f"s{number}", None) for number in range(500)]
    known = write_known([table(rows[:300]), table(rows[300:])], tmp_path, n_rows=500)
    for location, number, stamp, _ in rows:
        (found,) = known.at(location)
        raw = RawSample(key=location)
        assert found.examined(raw) == ExaminedSample(
            raw=raw,
            content_hash=f"{number:032x}",
            width=number,
            height=number + 1,
            notes=("cmyk",) * (number % 3),
        )
        assert found.has_stamp(stamp)
        assert not found.has_stamp("another")
    assert known.at("/data/500.jpg") == []


def test_at__several_readings_of_a_location(tmp_path):
    known = write_known(
        [table([("a", 1, "old", None), ("b", 2, "x", None), ("a", 3, "new", None)])],
        tmp_path,
        n_rows=3,
    )
    found = known.at("a")
    assert {_width(image) for image in found} == {1, 3}
    assert [_width(image) for image in found if image.has_stamp("new")] == [3]


def test_at__without_a_stamp_it_is_known_but_never_the_same(tmp_path):
    known = write_known([table([("a", 1, None, None)])], tmp_path, n_rows=1)
    (found,) = known.at("a")
    assert not found.has_stamp(None)
    assert not found.has_stamp("x")


def test_at__what_was_set_aside_is_not_known(tmp_path):
    known = write_known(
        [table([("a", 1, "x", "damaged"), (None, 2, None, None)])], tmp_path, n_rows=2
    )
    assert known.at("a") == []


def test_with_content__images_that_the_source_held(tmp_path):
    known = write_known(
        [table([(f"{PACK_SCHEME}folder/images-0000.bin#bytes=0-9", 7, None, None)])],
        tmp_path,
        n_rows=1,
    )
    (found,) = known.with_content(f"{7:032x}")
    assert _width(found) == 7
    assert known.with_content(f"{8:032x}") == []
