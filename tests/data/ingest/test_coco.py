import json
import threading
from io import BytesIO

import pytest
from PIL import Image
from tests.data.ingest.boxed_data import BOXES, SIZE, coco_content, write_coco, write_images

from weakspot.core.errors import DataError, UnavailableError
from weakspot.data.boxes import BOX_REASONS
from weakspot.data.coco import CocoSource
from weakspot.data.examine import QUARANTINE_REASONS, examine
from weakspot.data.open_source import open_source
from weakspot.data.settings import BoxSettings

EXACT = BoxSettings(margin=0.0)


def _read(path, boxes=EXACT, **more):
    return list(CocoSource(location=str(path), boxes=boxes, **more).read())


def _changed(**changes):
    return EXACT.model_copy(update=changes)


def _image(sample):
    return Image.open(BytesIO(sample.data))


def test_read__each_box_is_a_sample_with_its_own_pixels(tmp_path):
    samples = _read(write_coco(tmp_path))
    assert [sample.key for sample in samples] == ["1/1000", "1/1001", "101/1002"]
    assert [sample.labels for sample in samples] == [("disc",), ("square",), ("disc",)]
    assert {sample.split for sample in samples} == {"validation"}
    for sample, (_, box, _, colour) in zip(samples, BOXES, strict=True):
        image = _image(sample)
        assert image.size == (box[2], box[3])
        assert image.getcolors() == [
            (box[2] * box[3], Image.new("RGB", (1, 1), colour).getpixel((0, 0)))
        ]


def test_read__says_where_the_box_is(tmp_path):
    first, second, third = (sample.metadata for sample in _read(write_coco(tmp_path)))
    assert json.loads(first["box"]) == [4.0, 4.0, 10.0, 8.0]
    assert (first["image"], first["image_id"], first["annotation_id"], first["category_id"]) == (
        "a.png",
        "1",
        "1000",
        "3",
    )
    assert (first["image_width"], first["image_height"], first["n_boxes"]) == (*SIZE, 2)
    assert first["box_share"] == pytest.approx(80 / (64 * 48), abs=1e-6)
    assert second["box_aspect"] == 0.75
    assert (second["box_x"], second["box_y"]) == (36 / 64, round(28 / 48, 4))
    assert (first["at_border"], third["at_border"]) == (False, True)


def test_read__margin_shows_surroundings_inside_the_image(tmp_path):
    samples = _read(write_coco(tmp_path), BoxSettings(margin=0.5))
    assert [_image(sample).size for sample in samples] == [(19, 16), (24, 32), (30, 30)]


def test_read__begins_anywhere_with_the_same_bytes(tmp_path):
    path = write_coco(tmp_path)
    everything = _read(path)
    assert everything == _read(path)
    for start in range(4):
        assert list(CocoSource(location=str(path), boxes=EXACT).read(start)) == everything[start:]


BAD = [
    ({"iscrowd": 1}, "crowd"),
    ({"bbox": [1, 2, 3]}, "bad-box"),
    ({"bbox": [1, 2, -3, 4]}, "bad-box"),
    ({"bbox": [1, 2, "x", 4]}, "bad-box"),
    ({"bbox": None}, "bad-box"),
    ({"bbox": [64, 2, 5, 5]}, "outside"),
    ({"bbox": [10, 10, 3, 20]}, "tiny-box"),
    ({"bbox": [61, 10, 30, 20]}, "tiny-box"),
    ({"category_id": 99}, "unknown-class"),
    ({"image_id": 7}, "unknown-image"),
]


@pytest.mark.parametrize(("change", "reason"), BAD)
def test_read__bad_boxes_are_set_aside_and_others_stay(tmp_path, change, reason):
    content = coco_content()
    content["annotations"][1].update(change)
    samples = _read(write_coco(tmp_path, content))
    (bad,) = [sample for sample in samples if sample.key.endswith("/1001")]
    assert bad.reason == reason
    assert bad.detail
    assert sum(not sample.reason for sample in samples) == 2
    found = examine(bad)
    assert (found.reason, found.key) == (reason, bad.key)
    assert reason in BOX_REASONS
    assert reason in QUARANTINE_REASONS


def test_read__damaged_and_missing_images_take_all_their_boxes_along(tmp_path):
    path = write_coco(tmp_path)
    data = (tmp_path / "val2017" / "a.png").read_bytes()
    (tmp_path / "val2017" / "a.png").write_bytes(data[: len(data) // 2])
    assert [sample.reason for sample in _read(path)] == ["truncated", "truncated", ""]
    (tmp_path / "val2017" / "a.png").unlink()
    assert [sample.reason for sample in _read(path)] == ["missing-file", "missing-file", ""]


def test_read__image_of_another_size(tmp_path):
    content = coco_content()
    content["images"][0]["width"] = 63
    samples = _read(write_coco(tmp_path, content))
    assert [sample.reason for sample in samples] == ["other-size", "other-size", ""]
    assert "63 x 48 announced, 64 x 48 found" in samples[0].detail


def test_read__attributes_of_annotations_become_columns(tmp_path):
    content = coco_content()
    content["annotations"][2]["attributes"] = {"occluded": True, "weather": "rain", "list": [1]}
    assert (
        _read(write_coco(tmp_path, content))[2].metadata.items()
        >= {"occluded": True, "weather": "rain"}.items()
    )


def test_read__several_files_of_a_folder(tmp_path):
    write_coco(tmp_path)
    write_coco(tmp_path, name="annotations/instances_train2017.json")
    (tmp_path / "train2017").symlink_to(tmp_path / "val2017")
    source = open_source(str(tmp_path))
    assert source.kind == "coco"
    assert source.count() == 6
    samples = list(source.read())
    assert [sample.key for sample in samples[::3]] == ["train2017: 1/1000", "val2017: 1/1000"]
    assert [sample.split for sample in samples] == ["train"] * 3 + ["validation"] * 3
    assert list(source.read(4)) == samples[4:]


def test_read__images_without_a_split_keep_their_boxes_together(tmp_path):
    boxes = [
        (f"{number}.png", (4 * place, 4, 8, 8), "disc", "red")
        for number in range(40)
        for place in range(2)
    ]
    path = write_coco(tmp_path, coco_content(boxes), name="boxes.json")
    write_images(tmp_path / "images", boxes)
    samples = _read(path)
    by_image = {}
    for sample in samples:
        by_image.setdefault(sample.metadata["image"], set()).add(sample.split)
    assert all(len(splits) == 1 for splits in by_image.values())
    assert {split for splits in by_image.values() for split in splits} == {
        "train",
        "validation",
        "test",
    }


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("[]", "no JSON object"),
        (
            '{"images": [], "annotations": [], "categories": []}',
            "nothing under images, annotations, categories",
        ),
        ('{"images": [1]}', "no JSON object"),
        ('{"images": [{"id": 1}, {"id": 1}]}', "occurs twice"),
        ('{"images": [{"file_name": "a"}]}', "has no id"),
        (
            '{"images": [{"id": 1}], "annotations": [{"id": 1}, {"id": 1}], "categories": [{"id": 1}]}',
            "occur more than once",
        ),
    ],
)
def test_read__what_is_no_file_of_instances(tmp_path, content, message):
    (tmp_path / "boxes.json").write_text(content)
    with pytest.raises(DataError, match=message):
        _read(tmp_path / "boxes.json")


def test_read__images_that_are_nowhere(tmp_path):
    path = write_coco(tmp_path)
    (tmp_path / "val2017").rename(tmp_path / "elsewhere")
    with pytest.raises(DataError, match=r"\[boxes\] images"):
        _read(path)
    assert len(_read(path, _changed(images=str(tmp_path / "elsewhere")))) == 3


def test_fingerprint__follows_annotations_images_and_options(tmp_path):
    path = write_coco(tmp_path)
    first = CocoSource(location=str(path)).fingerprint()
    assert first == CocoSource(location=str(path)).fingerprint()
    assert first != CocoSource(location=str(path), boxes=EXACT).fingerprint()
    Image.new("RGB", SIZE).save(tmp_path / "val2017" / "b.png")
    assert first != CocoSource(location=str(path)).fingerprint()


def _detection(box, category, score, image_id=1):
    return {"image_id": image_id, "category_id": category, "bbox": box, "score": score}


def test_read__detections_are_taken_for_the_boxes_they_overlap_most(tmp_path):
    path = write_coco(tmp_path)
    found = [
        _detection([5, 4, 10, 8], 17, 0.4),
        _detection([4, 4, 10, 8], 3, 0.9),
        _detection([29, 20, 12, 16], 3, 0.5),
    ]
    (tmp_path / "results.json").write_text(json.dumps(found))
    source = CocoSource(
        location=str(path), boxes=_changed(detections=str(tmp_path / "results.json"))
    )
    assert [sample.predictions for sample in source.read()] == [("disc",), ("disc",), ("missed",)]
    assert [sample.predictions for sample in source.read(1)] == [("disc",), ("missed",)]
    assert source.known_classes == ("disc", "square", "missed")


@pytest.mark.parametrize(
    "content", ["{", "[{}]", '[{"image_id": 1, "category_id": 99, "bbox": [1], "score": 1}]', "7"]
)
def test_read__detections_that_cannot_be_read(tmp_path, content):
    (tmp_path / "results.json").write_text(content)
    with pytest.raises(DataError):
        _read(write_coco(tmp_path), _changed(detections=str(tmp_path / "results.json")))


def test_open_source__only_detection_data_is_taken_for_it(tmp_path):
    assert open_source(str(write_coco(tmp_path / "coco"))).kind == "coco"
    for name, content in (("list.json", "[]"), ("other.json", '{"a": 1}'), ("cut.json", "{")):
        (tmp_path / name).write_text(content)
        with pytest.raises(DataError, match="none that weakspot reads"):
            open_source(str(tmp_path / name))
    (tmp_path / "folder" / "cat").mkdir(parents=True)
    Image.new("RGB", (8, 8)).save(tmp_path / "folder" / "cat" / "a.png")
    (tmp_path / "folder" / "data.yaml").write_text("names: [cat]\n")
    assert open_source(str(tmp_path / "folder")).kind == "image-folder"
    with pytest.raises(UnavailableError, match="nothing at this path"):
        open_source(str(tmp_path / "gone.json"), kind="coco")
    with pytest.raises(DataError, match="no COCO file"):
        open_source(str(tmp_path / "folder"), kind="coco").count()


def test_read__can_be_given_up_in_the_middle(tmp_path):
    reading = CocoSource(location=str(write_coco(tmp_path)), boxes=EXACT).read()
    assert next(reading).key == "1/1000"
    reading.close()
    assert not [
        thread.name for thread in threading.enumerate() if thread.name.startswith("weakspot-crops")
    ]
