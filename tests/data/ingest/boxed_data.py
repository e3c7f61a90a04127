"""Small detection data sets on disk for tests: coloured rectangles on grey images."""

import json
from pathlib import Path

from PIL import Image, ImageDraw

SIZE = (64, 48)
# image, box (left, top, width, height), class, colour
BOXES = [
    ("a.png", (4, 4, 10, 8), "disc", "red"),
    ("a.png", (30, 20, 12, 16), "square", "blue"),
    ("b.png", (0, 0, 20, 20), "disc", "green"),
]
CATEGORIES = {"disc": 3, "square": 17}


def write_images(folder: Path, boxes=tuple(BOXES), size=SIZE) -> None:
    """Write the images with their boxes painted."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in dict.fromkeys(name for name, *_ in boxes):
        image = Image.new("RGB", size, "grey")
        for other, (left, top, wide, high), _, colour in boxes:
            if other == name:
                ImageDraw.Draw(image).rectangle(
                    (left, top, left + wide - 1, top + high - 1), fill=colour
                )
        image.save(folder / name)


def coco_content(boxes=tuple(BOXES), size=SIZE, **more) -> dict:
    """Return a COCO file of instances."""
    names = list(dict.fromkeys(name for name, *_ in boxes))
    return {
        "info": {"year": 2024, "nested": {"a": [1, 2, {"b": "]}"}]}},
        "images": [
            {"id": number * 100 + 1, "file_name": name, "width": size[0], "height": size[1]}
            for number, name in enumerate(names)
        ],
        "annotations": [
            {
                "id": 1000 + number,
                "image_id": names.index(name) * 100 + 1,
                "category_id": CATEGORIES[label],
                "bbox": list(box),
                "area": box[2] * box[3],
                "iscrowd": 0,
                "segmentation": [[1, 2, 3, 4, 5, 6]],
            }
            for number, (name, box, label, _) in enumerate(boxes)
        ],
        "categories": [
            {"id": number, "name": name, "supercategory": "shape"}
            for name, number in CATEGORIES.items()
        ],
        **more,
    }


def write_coco(
    folder: Path, content: dict | None = None, name: str = "annotations/instances_val2017.json"
) -> Path:
    """Write images and a COCO file as the data set is usually unpacked, and return the file."""
    write_images(folder / "val2017")
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(content or coco_content()))
    return path


def write_yolo(folder: Path, data: str | None = None) -> Path:
    """Write the same boxes as a YOLO data set, and return its data file."""
    write_images(folder / "images" / "val")
    labels = folder / "labels" / "val"
    labels.mkdir(parents=True)
    for name in ("a", "b"):
        lines = []
        for other, (left, top, wide, high), label, _ in BOXES:
            if other == f"{name}.png":
                shares = (
                    (left + wide / 2) / SIZE[0],
                    (top + high / 2) / SIZE[1],
                    wide / SIZE[0],
                    high / SIZE[1],
                )
                lines.append(" ".join([str(list(CATEGORIES).index(label)), *map(repr, shares)]))
        (labels / f"{name}.txt").write_text("\n".join(lines) + "\n")
    path = folder / "data.yaml"
    path.write_text(
        data or "path: .\ntrain: images/train\nval: images/val\nnames:\n  0: disc\n  1: square\n"
    )
    (folder / "images" / "train").mkdir()
    return path
