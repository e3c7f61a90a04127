"""COCO detection data: each box of a file of instances is a sample; a results file says what a detector made of it."""

import glob
import json
import re
from array import array
from collections.abc import Iterator, Mapping, Sized
from dataclasses import dataclass
from functools import cached_property
from pathlib import PurePosixPath
from typing import Any, ClassVar

import numpy as np

from weakspot.core.arrays import AnyArray, DoubleArray, IntArray
from weakspot.core.dataset import Split
from weakspot.core.errors import DataError
from weakspot.data.boxes import COORDINATES, Box, BoxedImage, BoxSource, Corners, Value
from weakspot.data.json_stream import read_members
from weakspot.data.locations import (
    UnreadableLocationError,
    file_facts,
    is_folder,
    is_local,
    is_there,
    join_location,
    local_path,
    match_files,
    open_location,
    parent_location,
    read_anew,
    shown_location,
)
from weakspot.data.source import (
    fingerprint_of_files,
    fingerprint_of_listing,
    fingerprint_of_values,
    parse_split,
)

NO_IMAGE = -1
_BAD = float("nan")


@dataclass(frozen=True, kw_only=True)
class CocoImage:
    """An entry of the list of images."""

    image_id: str
    name: str
    size: tuple[int, int] | None


@dataclass(frozen=True, kw_only=True, eq=False)
class CocoTable:
    """All that is taken from a COCO file; a million boxes take about 100 MB.

    Args:
        classes: class name by category id.
        images: those with boxes, in the order of the file; boxes of images that are not listed come after all others.
        starts: first box of every image [p + 1].
        corners: left, top, width, height of every box [n, 4]; NaN where they cannot be read.
        categories: category id of every box [n].
        ids: annotation id of every box, as text.
        is_crowd: which boxes stand for a group [n].
        attributes: what else is said of a box, by its place.
    """

    classes: Mapping[str, str]
    images: tuple[CocoImage, ...]
    starts: IntArray
    corners: DoubleArray
    categories: tuple[str, ...]
    ids: tuple[str, ...]
    is_crowd: AnyArray
    attributes: Mapping[int, Mapping[str, Value]]

    @property
    def n_boxes(self) -> int:
        return len(self.ids)


def read_coco(location: str) -> CocoTable:
    """Read a file of instances.

    Raises:
        DataError: if it is none, or ids of images, classes or annotations occur twice.
    """
    where = shown_location(location)
    images: dict[str, CocoImage] = {}
    classes: dict[str, str] = {}
    owners: list[str] = []
    categories: list[str] = []
    ids: list[str] = []
    words: dict[str, str] = {}
    corners, is_crowd = array("d"), array("b")
    attributes: dict[int, dict[str, Value]] = {}
    for name, entry in _entries(location, where):
        if name == "images":
            number = _new_id(entry, name, images, where)
            images[number] = _image(number, entry)
        elif name == "categories":
            number = _new_id(entry, name, classes, where)
            classes[number] = str(entry.get("name") or number)
        else:
            ids.append(_id(entry.get("id")) or f"unnumbered {len(ids) + 1}")
            for column, member in ((owners, "image_id"), (categories, "category_id")):
                text = _id(entry.get(member))
                # One string object for all that are equal.
                column.append(words.setdefault(text, text))
            corners.extend(_corners(entry.get("bbox")))
            is_crowd.append(1 if entry.get("iscrowd") else 0)
            if kept := _attributes(entry.get("attributes")):
                attributes[len(ids) - 1] = kept
    _refuse_incomplete({"images": images, "annotations": ids, "categories": classes}, where)
    repeated = len(ids) - len(set(ids))
    if repeated:
        raise DataError(
            f"{repeated} ids of annotations occur more than once.",
            where=where,
            fix="Give every annotation its own id.",
        )
    order, used, starts = _by_image(owners, images)
    new_place = {int(old): new for new, old in enumerate(order.tolist())} if attributes else {}
    listed = [*images.values(), CocoImage(image_id="", name="", size=None)]
    return CocoTable(
        classes=classes,
        images=tuple(listed[place] for place in used.tolist()),
        starts=starts,
        corners=np.frombuffer(corners, dtype=np.float64).reshape(-1, COORDINATES)[order],
        categories=tuple(categories[place] for place in order),
        ids=tuple(ids[place] for place in order),
        is_crowd=np.frombuffer(is_crowd, dtype=np.int8)[order] != 0,
        attributes={new_place[place]: values for place, values in attributes.items()},
    )


def _entries(location: str, where: str) -> Iterator[tuple[str, dict[str, object]]]:
    """Yield the entries of the three lists, each with the name of its list; other members are passed over."""
    with open_location(location) as stream:
        for name, entry in read_members(stream, where=where):
            if name not in ("images", "annotations", "categories"):
                continue
            if not isinstance(entry, dict):
                raise DataError(
                    f"An entry of {name!r} is no JSON object.",
                    where=where,
                    given=str(entry)[:80],
                    fix="Export it again.",
                )
            yield name, entry


def _new_id(entry: Mapping[str, object], name: str, known: Mapping[str, object], where: str) -> str:
    number = _id(entry.get("id"))
    if not number or number in known:
        what = (
            f"The id {number!r} occurs twice in {name!r}."
            if number
            else f"An entry of {name!r} has no id."
        )
        raise DataError(what, where=where, fix="Give every entry an id of its own.")
    return number


def _refuse_incomplete(lists: Mapping[str, Sized], where: str) -> None:
    missing = [name for name, entries in lists.items() if not entries]
    if missing:
        raise DataError(
            f"The file is no COCO file of instances: there is nothing under {', '.join(missing)}.",
            where=where,
            fix="Point to a file such as instances_val2017.json.",
        )


def _by_image(
    owners: list[str], images: Mapping[str, CocoImage]
) -> tuple[IntArray, IntArray, IntArray]:
    """Return the order of boxes by image, the images that have some, and the first box of each; unknown images come last."""
    places = {number: place for place, number in enumerate(images)}
    owner_places = np.array([places.get(owner, len(places)) for owner in owners], dtype=np.int64)
    used, counts = np.unique(owner_places, return_counts=True)
    starts = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
    return np.argsort(owner_places, kind="stable"), used, starts


def _attributes(given: object) -> dict[str, Value]:
    return {
        str(name): value
        for name, value in (given.items() if isinstance(given, dict) else ())
        if isinstance(value, str | int | float | bool)
    }


def _id(value: object) -> str:
    if isinstance(value, bool) or not isinstance(value, int | str | float):
        return ""
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)


def _image(number: str, entry: Mapping[str, object]) -> CocoImage:
    sides = [
        int(side)
        for name in ("width", "height")
        if type(side := entry.get(name)) is int and side > 0
    ]
    size = (sides[0], sides[1]) if len(sides) == 2 else None  # noqa: PLR2004 - width and height
    return CocoImage(image_id=number, name=str(entry.get("file_name") or ""), size=size)


def _corners(value: object) -> list[float]:
    if not isinstance(value, list) or len(value) != COORDINATES:
        return [_BAD] * COORDINATES
    return [
        float(item) if isinstance(item, int | float) and not isinstance(item, bool) else _BAD
        for item in value
    ]


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
        entries = json.loads(read_anew(location))
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


_WORDS = re.compile(r"[A-Za-z]+")
_FIRST_KEYS = re.compile(
    rb'^\s*\{\s*"(images|annotations|categories|info|licenses|license|type)"\s*:'
)
_NAME_IN_SPLIT = "_annotations.coco.json"
_PATTERNS = (
    "instances_*.json",
    "annotations/instances_*.json",
    _NAME_IN_SPLIT,
    f"*/{_NAME_IN_SPLIT}",
)


def is_coco_start(data: bytes) -> bool:
    """Return whether the first bytes of a file are those of a COCO file."""
    return _FIRST_KEYS.match(data.removeprefix(b"\xef\xbb\xbf")) is not None


def coco_files(folder: str) -> list[str]:
    """Return the COCO files of a folder: `annotations/instances_*.json` or `<split>/_annotations.coco.json`."""
    top = glob.escape(str(local_path(folder))) if is_local(folder) else folder
    return sorted(
        {file for pattern in _PATTERNS for file in match_files(join_location(top, pattern))}
    )


@dataclass(frozen=True, kw_only=True)
class _Part:
    """One file of instances, with the folder of its images."""

    table: CocoTable
    folder: str
    split: Split | None
    prefix: str


@dataclass(frozen=True, kw_only=True)
class CocoSource(BoxSource):
    """Boxes of one or several COCO files of instances, each cut out of its image.

    The location is a file, or a folder that holds files by their usual names. The split follows from the file's name or folder
    (`instances_val2017.json`, `train/_annotations.coco.json`). Images without boxes are no samples.
    """

    kind: ClassVar[str] = "coco"

    def fingerprint(self) -> str:
        detections = [self.boxes.detections] if self.boxes.detections else []
        content = fingerprint_of_files(
            [*self._files, *detections], self.kind, self.boxes, self.default_split, self.fractions
        )
        facts = (
            file_facts(place)
            for place in self._image_places()
            if is_local(place) and is_there(place)
        )
        return fingerprint_of_values([content, fingerprint_of_listing(facts)])

    def count(self) -> int:
        return sum(part.table.n_boxes for part in self._parts)

    @property
    def known_classes(self) -> tuple[str, ...]:
        """Return all classes, also those without a box, if detections may name them; else none, and the labels tell."""
        if self._detections is None:
            return ()
        listed = dict.fromkeys(name for part in self._parts for name in part.table.classes.values())
        return (*listed, self._detections.missed)

    def boxed_images(self, start: int) -> Iterator[BoxedImage]:
        before = 0
        for part in self._parts:
            first = max(0, start - before)
            before += part.table.n_boxes
            if first < part.table.n_boxes:
                yield from self._images_of(part, first)

    def _images_of(self, part: _Part, first: int) -> Iterator[BoxedImage]:
        table = part.table
        begin = int(np.searchsorted(table.starts, first, side="right")) - 1
        for place in range(begin, len(table.images)):
            image = table.images[place]
            boxes = np.arange(max(first, int(table.starts[place])), int(table.starts[place + 1]))
            yield BoxedImage(
                location=join_location(part.folder, image.name) if image.name else None,
                name=image.name,
                image_id=image.image_id,
                split=part.split,
                size=image.size,
                boxes=self._boxes(part, image.image_id, boxes),
                n_boxes=int(table.starts[place + 1] - table.starts[place]),
            )

    def _boxes(self, part: _Part, image_id: str, places: IntArray) -> tuple[Box, ...]:
        said = (
            None
            if self._detections is None
            else self._detections.matched(image_id, part.table, places)
        )
        return tuple(
            _box(part, image_id, place, None if said is None else said[number])
            for number, place in enumerate(places.tolist())
        )

    @cached_property
    def _files(self) -> list[str]:
        if not is_folder(self.location):
            return [self.location]
        found = coco_files(self.location)
        if not found:
            raise DataError(
                "The folder holds no COCO file.",
                where=shown_location(self.location),
                fix="Point to the JSON file, or call it instances_<split>.json or <split>/_annotations.coco.json.",
            )
        return found

    @cached_property
    def _parts(self) -> tuple[_Part, ...]:
        several = len(self._files) > 1
        parts = []
        for location in self._files:
            table = read_coco(location)
            name = f"{split_word(location)}: " if several else ""
            folder = images_folder(location, table, self.boxes.images)
            parts.append(
                _Part(
                    table=table,
                    folder=folder,
                    split=split_of_coco(location),
                    prefix=name,
                )
            )
        return tuple(parts)

    @cached_property
    def _detections(self) -> Detections | None:
        if not self.boxes.detections:
            return None
        classes = {
            number: name for part in self._parts for number, name in part.table.classes.items()
        }
        return read_detections(self.boxes.detections, classes, overlap=self.boxes.overlap)

    def _image_places(self) -> Iterator[str]:
        for part in self._parts:
            for image in part.table.images:
                if image.name:
                    yield join_location(part.folder, image.name)


def split_word(location: str) -> str:
    """Return what tells one COCO file from its neighbours: the end of its name, or its folder.

    >>> split_word("annotations/instances_val2017.json"), split_word("data/train/_annotations.coco.json")
    ('val2017', 'train')
    """
    path = PurePosixPath(location.replace("\\", "/"))
    if path.name == _NAME_IN_SPLIT:
        return path.parent.name
    return path.stem.rpartition("_")[2]


def split_of_coco(location: str) -> Split | None:
    """Return the split that the name of a COCO file tells, or None.

    >>> split_of_coco("annotations/instances_val2017.json"), split_of_coco("boxes.json")
    (<Split.VALIDATION: 'validation'>, None)
    """
    words = _WORDS.findall(split_word(location))
    return next((split for word in words if (split := parse_split(word)) is not None), None)


def images_folder(location: str, table: CocoTable, given: str) -> str:
    """Return the folder that names of images start at: the given one, else the first around the file that holds one of them.

    Raises:
        DataError: naming the folders that were looked into.
    """
    beside = parent_location(location)
    above = join_location(beside, "..")
    word = split_word(location)
    choices = [given] if given else [beside]
    if not given:
        choices += [
            join_location(top, name)
            for top in (beside, above)
            for name in ("images", word, f"images/{word}", "data")
        ]
    names = [image.name for image in table.images if image.name][:5]
    for folder in choices:
        if any(_is_there(join_location(folder, name)) for name in names):
            return folder
    raise DataError(
        "The images of the annotations are not there.",
        where=shown_location(location),
        given=f"{names[0] if names else 'no names'}, looked for in {', '.join(map(shown_location, choices))}",
        fix="Set [boxes] images to the folder that holds them.",
    )


def _is_there(location: str) -> bool:
    try:
        return is_there(location)
    except (UnreadableLocationError, OSError):
        return False


def _box(part: _Part, image_id: str, place: int, prediction: str | None) -> Box:
    table = part.table
    number, category = table.ids[place], table.categories[place]
    label = table.classes.get(category)
    reason, detail = "", ""
    if not image_id:
        reason, detail = "unknown-image", f"annotation {number}"
    elif table.is_crowd[place]:
        reason = "crowd"
    elif label is None:
        reason, detail = "unknown-class", f"category_id {category or 'missing'}"
    corners: Corners = tuple(table.corners[place].tolist())
    return Box(
        key=f"{part.prefix}{image_id or '?'}/{number}",
        annotation_id=number,
        category_id=category,
        label=label,
        corners=corners,
        reason=reason,
        detail=detail,
        prediction=prediction,
        attributes=table.attributes.get(place, {}),
    )
