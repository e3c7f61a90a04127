"""What a detector said of boxes: a COCO results file, matched to annotations by overlap."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from weakspot.core.arrays import DoubleArray, IntArray
from weakspot.core.errors import DataError
from weakspot.ingest.boxes import COORDINATES
from weakspot.ingest.coco_table import CocoTable
from weakspot.media.locations import read_anew, shown_location

MISSED = "missed"


@dataclass(frozen=True, kw_only=True, eq=False)
class Detections:
    """Detections by image, surest first.

    Args:
        boxes: left, top, width, height of the detections of an image [k, 4], by image id.
        names: their classes, by image id.
        overlap: intersection over union from which on a detection is taken for a box.
        missed: what is said of a box that no detection was taken for.
    """

    boxes: Mapping[str, DoubleArray]
    names: Mapping[str, tuple[str, ...]]
    overlap: float
    missed: str = MISSED

    def matched(self, image_id: str, table: CocoTable, places: IntArray) -> list[str]:
        """Return what the detector said of some boxes of an image.

        Surest first, every detection is taken for the box it overlaps most, among the boxes of the image that none was taken for.
        """
        owner = int(np.searchsorted(table.starts, places[0], side="right")) - 1
        first, stop = int(table.starts[owner]), int(table.starts[owner + 1])
        answers = [self.missed] * (stop - first)
        if image_id in self.boxes:
            overlaps = intersection_over_union(self.boxes[image_id], table.corners[first:stop])
            overlaps[:, table.is_crowd[first:stop]] = 0.0
            for name, row in zip(self.names[image_id], overlaps, strict=True):
                best = int(np.argmax(row))
                if row[best] >= self.overlap:
                    answers[best] = name
                    overlaps[:, best] = -1.0
        return [answers[place - first] for place in places.tolist()]


def intersection_over_union(first: DoubleArray, second: DoubleArray) -> DoubleArray:
    """Return how far boxes [k, 4] overlap others [n, 4]: [k, n], 0 where a box cannot be read.

    >>> intersection_over_union(np.array([[0.0, 0.0, 2.0, 1.0]]), np.array([[1.0, 0.0, 2.0, 1.0]])).round(2).tolist()
    [[0.33]]
    """
    low = np.maximum(first[:, None, :2], second[None, :, :2])
    high = np.minimum(
        first[:, None, :2] + first[:, None, 2:], second[None, :, :2] + second[None, :, 2:]
    )
    shared = np.clip(high - low, 0.0, None).prod(axis=2)
    total = first[:, 2:].prod(axis=1)[:, None] + second[:, 2:].prod(axis=1)[None, :] - shared
    share: DoubleArray = np.nan_to_num(
        np.divide(shared, total, out=np.zeros_like(shared), where=total > 0), nan=0.0
    )
    return share


def read_detections(location: str, classes: Mapping[str, str], *, overlap: float) -> Detections:
    """Read a COCO results file: a list of image_id, category_id, bbox and score.

    Raises:
        DataError: if it is none, or names classes that are not listed.
    """
    where = shown_location(location)
    try:
        entries = json.loads(read_anew(location).data)
        found = [_detection(entry, classes) for entry in entries]
    except KeyError as error:
        raise DataError(
            f"A detection lacks or misnames {error}.",
            where=where,
            fix="Write image_id, category_id, bbox, score.",
        ) from error
    except (ValueError, TypeError, RecursionError) as error:
        raise DataError(
            "The file is no list of detections.", where=where, fix="Write a COCO results file."
        ) from error
    if any(len(sides) != COORDINATES for *_, sides in found):
        raise DataError(
            "A detection has no box of four numbers.",
            where=where,
            fix="Write bbox as left, top, width, height.",
        )
    boxes: dict[str, list[list[float]]] = {}
    names: dict[str, list[str]] = {}
    for image_id, _score, name, sides in sorted(found, key=lambda item: -item[1]):
        boxes.setdefault(image_id, []).append(sides)
        names.setdefault(image_id, []).append(name)
    return Detections(
        boxes={image_id: np.array(sides, dtype=np.float64) for image_id, sides in boxes.items()},
        names={image_id: tuple(listed) for image_id, listed in names.items()},
        overlap=overlap,
    )


def _detection(
    entry: Mapping[str, Any], classes: Mapping[str, str]
) -> tuple[str, float, str, list[float]]:
    return (
        str(entry["image_id"]),
        float(entry["score"]),
        classes[str(entry["category_id"])],
        [float(side) for side in entry["bbox"]],
    )
