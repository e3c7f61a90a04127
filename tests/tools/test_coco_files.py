import json

import numpy as np
import pytest
from tests.data.ingest.boxed_data import BOXES, CATEGORIES, coco_content, write_coco, write_yolo
from tests.tools.made_bundle import TAG, made_bundle
from tests.tools.real_libraries import run_real

from weakspot.core.dataset import dataset_from_columns
from weakspot.core.errors import DataError
from weakspot.core.samples import SampleSet
from weakspot.project.project import Project
from weakspot.tools.coco import write_dataset
from weakspot.tools.exchange import exchange_bundle, export_to

LOAD = """
import json, sys
from pycocotools.coco import COCO
from pycocotools.cocoeval import COCOeval
found = COCO(sys.argv[1])
told = {"boxes": [], "names": [one["name"] for one in found.loadCats(found.getCatIds())]}
for number in found.getAnnIds():
    entry = found.loadAnns([number])[0]
    image = found.loadImgs([entry["image_id"]])[0]
    told["boxes"].append([number, image["file_name"], entry["bbox"], found.loadCats([entry["category_id"]])[0]["name"]])
said = [{k: entry[k] for k in ("image_id", "category_id", "bbox")} | {"score": 0.9} for entry in found.dataset["annotations"]]
measured = COCOeval(found, found.loadRes(said), "bbox")
measured.evaluate(); measured.accumulate(); measured.summarize()
told["precision"] = measured.stats[0]
print("TOLD" + json.dumps(told))
"""


def _project(folder, source, more=""):
    (folder / "weakspot.toml").write_text(
        f'[data]\nsource = "{source}"\n{more}[embedder]\nname = "planted"\n'
    )
    project = Project.open(folder)
    project.ingest()
    return project


def _loaded(path, home):
    return json.loads(run_real(LOAD, path, home=home).split("TOLD")[1])


def test_write_dataset__coco_there_and_back_in_the_real_library(tmp_path):
    write_coco(tmp_path)
    written = export_to(
        _project(tmp_path, "annotations/instances_val2017.json"),
        "coco",
        tmp_path / "out",
    )
    told = _loaded(written.files[0], tmp_path)
    assert told["boxes"] == [
        [1000 + number, name, list(box), label]
        for number, (name, box, label, _) in enumerate(BOXES)
    ]
    assert told["precision"] == pytest.approx(1.0)
    content = json.loads(written.files[0].read_text())
    given = coco_content()
    assert content["images"] == given["images"]
    kept = ("id", "image_id", "category_id", "bbox", "area", "iscrowd")
    assert [{name: one[name] for name in kept} for one in content["annotations"]] == [
        {name: one[name] for name in kept} for one in given["annotations"]
    ]
    assert {one["name"]: one["id"] for one in content["categories"]} == CATEGORIES
    assert content["annotations"][0]["attributes"]["split"] == "validation"


def test_write_dataset__yolo_becomes_coco(tmp_path):
    write_yolo(tmp_path)
    written = write_dataset(exchange_bundle(_project(tmp_path, "data.yaml")), tmp_path / "out")
    content = json.loads(written.files[0].read_text())
    assert [one["bbox"] for one in content["annotations"]] == [
        pytest.approx(list(box)) for _, box, _, _ in BOXES
    ]
    assert [one["id"] for one in content["annotations"]] == [1, 2, 3]
    assert [one["file_name"] for one in content["images"]] == [
        "images/val/a.png",
        "images/val/b.png",
    ]
    assert {one["name"]: one["id"] for one in content["categories"]} == {"disc": 0, "square": 1}


def test_write_dataset__whole_images_with_slices(tmp_path):
    written = write_dataset(made_bundle(tmp_path / "images"), tmp_path / "out")
    content = json.loads(written.files[0].read_text())
    assert written.files[0].name == "images.json"
    assert len(content["annotations"]) == len(content["images"]) == 6
    assert all(one["bbox"] == [0.0, 0.0, 12.0, 9.0] for one in content["annotations"])
    assert [one["attributes"]["slices"] for one in content["annotations"]] == [
        [],
        [TAG],
        [],
        [TAG],
        [],
        [TAG],
    ]
    assert content["annotations"][1]["attributes"]["prediction"] == "square"
    assert content["annotations"][1]["attributes"]["failed"] is True
    assert "box share" not in content["annotations"][0]["attributes"]
    assert content["info"]["slices"][0]["tag"] == TAG


def test_write_dataset__what_has_no_place_in_coco(tmp_path):
    none = {
        "slices": (),
        "has_failed": np.zeros(1, dtype=bool),
        "is_judged": np.zeros(1, dtype=bool),
    }
    many = dataset_from_columns(class_names=["disc"], label_lists=[[0]])
    with pytest.raises(DataError, match="several"):
        write_dataset(
            made_bundle(tmp_path, samples=SampleSet(dataset=many, rows=np.arange(1)), **none),
            tmp_path / "out",
        )
    bare = dataset_from_columns(class_names=["disc"], labels=[0])
    with pytest.raises(DataError, match="nothing to write"):
        write_dataset(
            made_bundle(tmp_path, samples=SampleSet(dataset=bare, rows=np.arange(1)), **none),
            tmp_path / "out",
        )
