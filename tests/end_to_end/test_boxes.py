"""Detection data end to end: a rare kind of box is found, proven, and goes back into the annotations it came from."""

import json

import pytest
from PIL import Image
from typer.testing import CliRunner

from weakspot.cli.main import app
from weakspot.core.dataset import Split
from weakspot.project.project import Project
from weakspot.testing.planted import plant, rare

SIDE, STEP, PER_IMAGE = 32, 40, 4
SETTINGS = """\
[data]
source = "coco"
[boxes]
margin = 0.0
detections = "detections.json"
[embedder]
name = "planted"
"""


@pytest.fixture(scope="module")
def street(tmp_path_factory):
    """A folder with a project over boxes: green discs are hardly ever in training, and the detector takes them for stars."""
    folder = tmp_path_factory.mktemp("boxes")
    world = plant(rare(0.01), 1000, seed=3)
    names = world.dataset.class_names
    detections = []
    for split, name in ((Split.TRAIN, "train"), (Split.VALIDATION, "val")):
        rows = world.dataset.rows_of(split).tolist()
        content = {
            "images": [],
            "annotations": [],
            "categories": [{"id": 10 + code, "name": one} for code, one in enumerate(names)],
        }
        (folder / "coco" / name).mkdir(parents=True)
        for first in range(0, len(rows), PER_IMAGE):
            image = Image.new("RGB", (PER_IMAGE * STEP, SIDE + 8), "white")
            number = 1 + len(detections)
            for place, row in enumerate(rows[first : first + PER_IMAGE]):
                image.paste(world.image(row, side=SIDE), (place * STEP, 4))
                label = int(world.dataset.labels[row])
                box = [place * STEP, 4, SIDE, SIDE]
                entry = {
                    "id": row + 1,
                    "image_id": number,
                    "category_id": 10 + label,
                    "bbox": box,
                    "area": SIDE * SIDE,
                    "iscrowd": 0,
                }
                content["annotations"].append(entry)
                said = (
                    names.index("star")
                    if world.slices[0].inside[row] and split is Split.VALIDATION
                    else label
                )
                said = said if row % 9 else names.index("square")
                detections.append(
                    {"image_id": number, "category_id": 10 + said, "bbox": box, "score": 0.9}
                )
            size = {"width": image.width, "height": image.height}
            content["images"].append({"id": number, "file_name": f"{number}.png", **size})
            image.save(folder / "coco" / name / f"{number}.png")
        (folder / "coco" / f"instances_{name}.json").write_text(json.dumps(content))
    (folder / "detections.json").write_text(json.dumps(detections))
    (folder / "weakspot.toml").write_text(SETTINGS)
    return folder


def test_boxes__a_rare_kind_is_found_and_goes_back_into_the_annotations(street):
    project = Project.open(street)
    record = project.run()
    titles = [found.title for found, _ in record.published()]
    assert any("disc" in title and "green" in title for title in titles), titles
    result = CliRunner().invoke(
        app, ["export", "-p", str(street), "--to", "coco", "--out", str(street / "out"), "--json"]
    )
    assert result.exit_code == 0, result.output
    written = json.loads((street / "out" / "instances.json").read_text())
    given = {}
    for name in ("train", "val"):
        content = json.loads((street / "coco" / f"instances_{name}.json").read_text())
        given |= {entry["id"]: entry for entry in content["annotations"]}
    kept = ("id", "image_id", "category_id", "bbox", "area", "iscrowd")
    assert {
        entry["id"]: {name: entry[name] for name in kept} for entry in written["annotations"]
    } == given
    tagged = [entry for entry in written["annotations"] if entry["attributes"]["slices"]]
    assert tagged
    disc = next(one["id"] for one in written["categories"] if one["name"] == "disc")
    assert {entry["category_id"] for entry in tagged} >= {disc}
    assert any(
        entry["attributes"]["failed"]
        for entry in tagged
        if entry["attributes"]["split"] == "validation"
    )
    assert written["info"]["slices"][0]["gap"] > 0.3
