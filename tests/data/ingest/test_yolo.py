import json

import pytest
from tests.data.ingest.boxed_data import write_coco, write_yolo

from weakspot.core.errors import DataError
from weakspot.data.coco import CocoSource
from weakspot.data.open_source import open_source
from weakspot.data.settings import BoxSettings
from weakspot.data.yolo import YoloSource, parse_line

EXACT = BoxSettings(margin=0.0)


def _read(path, start=0):
    return list(YoloSource(location=str(path), boxes=EXACT).read(start))


def test_read__gives_the_same_images_as_coco(tmp_path):
    own = _read(write_yolo(tmp_path / "yolo"))
    other = list(CocoSource(location=str(write_coco(tmp_path / "coco")), boxes=EXACT).read())
    assert [sample.data for sample in own] == [sample.data for sample in other]
    assert [sample.labels for sample in own] == [sample.labels for sample in other]
    assert [json.loads(sample.metadata["box"]) for sample in own] == [
        pytest.approx(json.loads(sample.metadata["box"])) for sample in other
    ]
    assert [sample.key for sample in own] == [
        "images/val/a.png/1",
        "images/val/a.png/2",
        "images/val/b.png/1",
    ]
    assert {sample.split for sample in own} == {"validation"}


def test_read__begins_anywhere(tmp_path):
    path = write_yolo(tmp_path)
    everything = _read(path)
    for start in range(4):
        assert _read(path, start) == everything[start:]


@pytest.mark.parametrize("point_to", ["", "data.yaml"])
def test_open_source__knows_it(tmp_path, point_to):
    write_yolo(tmp_path)
    source = open_source(str(tmp_path / point_to))
    assert source.kind == "yolo"
    assert source.count() == 3


def test_read__bad_lines_are_set_aside(tmp_path):
    path = write_yolo(tmp_path)
    lines = [
        "0 0.5 0.5 0.2",
        "x 0.5 0.5 0.2 0.2",
        "7 0.5 0.5 0.2 0.2",
        "0 0.5 0.5 0 0.2",
        "0 nan 0.5 0.2 0.2",
    ]
    (tmp_path / "labels" / "val" / "a.txt").write_text("\n".join([*lines, "", "0 0.5 0.5 0.2 0.2"]))
    samples = _read(path)
    assert [sample.reason for sample in samples] == [
        "bad-box",
        "bad-box",
        "unknown-class",
        "bad-box",
        "bad-box",
        "",
        "",
    ]
    assert samples[2].detail == "line 3: class 7"


def test_read__images_without_labels_have_no_boxes(tmp_path):
    path = write_yolo(tmp_path)
    (tmp_path / "labels" / "val" / "a.txt").unlink()
    assert len(_read(path)) == 1


def test_read__list_of_images_and_a_split_that_starts_above(tmp_path):
    data = "train: val.txt\nval: ../images/val  # as some tools write it\ntest:\nnc: 2\nnames: ['disc', square]\n"
    path = write_yolo(tmp_path, data)
    (tmp_path / "val.txt").write_text("./images/val/a.png\n./images/val/gone.png\n")
    (tmp_path / "labels" / "val" / "gone.txt").write_text("0 0.5 0.5 0.5 0.5\n")
    samples = _read(path)
    assert [sample.split for sample in samples if not sample.reason] == ["train"] * 2 + [
        "validation"
    ] * 3
    assert [sample.reason for sample in samples if sample.reason] == ["missing-file"]


def test_parse_line__polygons_count_as_the_box_around_them():
    assert parse_line("1 0.1 0.2 0.5 0.2 0.3 0.6") == (1, pytest.approx((0.1, 0.2, 0.4, 0.4)))


def test_fingerprint__follows_labels(tmp_path):
    path = write_yolo(tmp_path)
    first = YoloSource(location=str(path)).fingerprint()
    assert first == YoloSource(location=str(path)).fingerprint()
    (tmp_path / "labels" / "val" / "a.txt").write_text("0 0.5 0.5 0.2 0.2\n")
    assert first != YoloSource(location=str(path)).fingerprint()


@pytest.mark.parametrize(
    "data",
    [
        "val: nowhere\nnames: [disc]\n",
        "val: labels\nnames: [disc]\n",
        "names: [disc]\n",
        "val: images/val\n",
    ],
)
def test_read__what_it_cannot_use(tmp_path, data):
    with pytest.raises(DataError):
        _read(write_yolo(tmp_path, data))


def test_read__folder_without_a_data_file(tmp_path):
    with pytest.raises(DataError, match="no data file"):
        _read(tmp_path)
