"""A project as a COCO file: boxes with the slices they belong to, or whole images as one box each."""

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from weakspot.core.dataset import Dataset, Task
from weakspot.core.errors import DataError
from weakspot.tools.bundle import (
    ExchangeBundle,
    Written,
    confidences,
    label_names,
    predicted_names,
    slice_facts,
    split_words,
)
from weakspot.tools.files import image_paths, write_json

BOX_COLUMNS = (
    "box",
    "image",
    "image_id",
    "annotation_id",
    "category_id",
    "image_width",
    "image_height",
)
_MEASURED = ("box_share", "box_aspect", "box_x", "box_y", "n_boxes", "at_border")


def write_dataset(bundle: ExchangeBundle, folder: Path) -> Written:
    """Write `instances.json` of a project over boxes, or `images.json` of one over whole images.

    Every annotation has `attributes`: the tags of its slices, its split, whether the classifier failed, what it said, and the
    project's own columns. Boxes, names and numbers are those that the project was made from.

    Raises:
        DataError: if the task has several labels a sample, or no labelled sample has an image.
    """
    if bundle.samples.dataset.task is Task.MULTI_LABEL:
        raise DataError(
            "COCO has one class an annotation, and samples here have several.",
            fix="Export to fiftyone instead.",
        )
    has_boxes = set(BOX_COLUMNS) <= set(bundle.samples.dataset.metadata_names)
    places = _boxes(bundle.samples.dataset) if has_boxes else _whole_images(bundle, folder)
    content = _Content(bundle=bundle, places=places)
    if not content.labelled:
        raise DataError(
            "No labelled sample has an image, so there is nothing to write.",
            fix="Export to another tool.",
        )
    path = write_json(
        folder / ("instances.json" if has_boxes else "images.json"), content.as_json()
    )
    what = "boxes" if has_boxes else "images, each with a box around all of it"
    sentence = (
        f"{len(content.labelled)} {what}. Load it with: pycocotools.coco.COCO({str(path)!r})."
    )
    return Written(files=(path,), sentence=sentence)


@dataclass(frozen=True, kw_only=True)
class _Place:
    """Where a sample stands: in which image, and its box there; numbers as the project was given them."""

    image: str
    image_id: str
    annotation_id: str
    category_id: str
    size: tuple[int, int]
    box: tuple[float, ...]


def _boxes(dataset: Dataset) -> list[_Place | None]:
    columns = [dataset.metadata(name).to_pylist() for name in BOX_COLUMNS]
    return [None if line[0] is None else _box(*line) for line in zip(*columns, strict=True)]


def _box(box: str, image: str, *numbers: object) -> _Place:
    image_id, annotation_id, category_id, width, height = numbers
    return _Place(
        image=image,
        image_id=str(image_id),
        annotation_id=str(annotation_id),
        category_id=str(category_id),
        size=(int(str(width)), int(str(height))),
        box=tuple(float(number) for number in json.loads(box)),
    )


def _whole_images(bundle: ExchangeBundle, folder: Path) -> list[_Place | None]:
    table = bundle.samples.dataset.table
    sizes = zip(table.column("width").to_pylist(), table.column("height").to_pylist(), strict=True)
    paths = image_paths(bundle, folder)
    return [
        None
        if path is None
        else _Place(
            image=path,
            image_id=path,
            annotation_id="",
            category_id="",
            size=size,
            box=(0.0, 0.0, float(size[0]), float(size[1])),
        )
        for path, size in zip(paths, sizes, strict=True)
    ]


@dataclass(frozen=True, kw_only=True, eq=False)
class _Content:
    """The lists of a COCO file."""

    bundle: ExchangeBundle
    places: Sequence[_Place | None]

    @cached_property
    def labelled(self) -> dict[int, tuple[_Place, str]]:
        """Return place and class of every sample that has both, by row."""
        labels = label_names(self.bundle.samples.dataset)
        pairs = enumerate(zip(self.places, labels, strict=True))
        return {
            row: (place, label[0]) for row, (place, label) in pairs if place is not None and label
        }

    def as_json(self) -> dict[str, object]:
        places = [place for place, _ in self.labelled.values()]
        images = {(place.image, place.image_id): place for place in places}
        image_ids = dict(
            zip(images, whole_numbers([place.image_id for place in images.values()]), strict=True)
        )
        numbers = whole_numbers([place.annotation_id for place in places])
        categories = self._categories()
        more = self._attributes()
        return {
            "info": {
                "description": f"weakspot: {self.bundle.name}",
                "slices": [slice_facts(one) for one in self.bundle.slices],
            },
            "licenses": [],
            "images": [
                {
                    "id": image_ids[key],
                    "file_name": place.image,
                    "width": place.size[0],
                    "height": place.size[1],
                }
                for key, place in images.items()
            ],
            "annotations": [
                {
                    "id": number,
                    "image_id": image_ids[place.image, place.image_id],
                    "category_id": categories[label],
                    "bbox": list(place.box),
                    "area": place.box[2] * place.box[3],
                    "iscrowd": 0,
                    "attributes": more[row],
                }
                for number, (row, (place, label)) in zip(
                    numbers, self.labelled.items(), strict=True
                )
            ],
            "categories": [
                {"id": number, "name": name, "supercategory": ""}
                for name, number in categories.items()
            ],
        }

    def _categories(self) -> dict[str, int]:
        """Return the number of every class that occurs: the one it had, where each has one of its own."""
        given: dict[str, str] = {}
        for place, label in self.labelled.values():
            given.setdefault(label, place.category_id)
        names = [name for name in self.bundle.samples.dataset.class_names if name in given]
        return dict(zip(names, whole_numbers([given[name] for name in names]), strict=True))

    def _attributes(self) -> list[dict[str, object]]:
        dataset = self.bundle.samples.dataset
        said, sure, tags = predicted_names(dataset), confidences(dataset), self.bundle.tags()
        known = [
            ("sample_id", dataset.sample_ids()),
            ("split", split_words(dataset)),
            ("confidence", sure),
        ]
        own = [name for name in dataset.metadata_names if name not in BOX_COLUMNS + _MEASURED]
        columns = [*known, *((name, dataset.metadata(name).to_pylist()) for name in own)]
        found = []
        for row, failed in enumerate(self.bundle.has_failed.tolist()):
            names = said[row]
            entry = {
                "slices": tags[row],
                "failed": failed if self.bundle.is_judged[row] else None,
                "prediction": names[0] if names else None,
                **{name: values[row] for name, values in columns},
            }
            found.append(
                {
                    name: value
                    for name, value in entry.items()
                    if value is not None and not _is_nan(value)
                }
            )
        return found


def whole_numbers(given: Sequence[str]) -> list[int]:
    """Return the given numbers if all are different whole numbers, else 1, 2, 3, ...

    >>> whole_numbers(["7", "12"]), whole_numbers(["a", "12"])
    ([7, 12], [1, 2])
    """
    if all(text.isdigit() for text in given) and len({int(text) for text in given}) == len(given):
        return [int(text) for text in given]
    return list(range(1, len(given) + 1))


def _is_nan(value: object) -> bool:
    return isinstance(value, float) and math.isnan(value)
