"""One COCO file of instances as arrays: images, classes and boxes, grouped by image."""

from array import array
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from weakspot.core.arrays import AnyArray, DoubleArray, IntArray
from weakspot.core.errors import DataError
from weakspot.ingest.boxes import COORDINATES, Value
from weakspot.media.json_stream import read_members
from weakspot.media.locations import open_location, shown_location

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
    reading = _Reading()
    with open_location(location) as stream:
        for name, entry in read_members(stream, where=where):
            reading.take(name, entry, where)
    reading.refuse(where)
    return reading.table()


@dataclass
class _Reading:
    """What was read so far."""

    images: dict[str, CocoImage] = field(default_factory=dict)
    classes: dict[str, str] = field(default_factory=dict)
    owners: list[str] = field(default_factory=list)
    categories: list[str] = field(default_factory=list)
    ids: list[str] = field(default_factory=list)
    corners: "array[float]" = field(default_factory=lambda: array("d"))
    is_crowd: "array[int]" = field(default_factory=lambda: array("b"))
    attributes: dict[int, dict[str, Value]] = field(default_factory=dict)
    _words: dict[str, str] = field(default_factory=dict)

    def take(self, name: str, entry: object, where: str) -> None:
        """Take one entry of a list; other members are passed over."""
        if name not in ("images", "annotations", "categories"):
            return
        if not isinstance(entry, dict):
            raise DataError(
                f"An entry of {name!r} is no JSON object.",
                where=where,
                given=str(entry)[:80],
                fix="Export it again.",
            )
        if name == "annotations":
            self._take_box(entry)
            return
        number = _id(entry.get("id"))
        known: Mapping[str, object] = self.images if name == "images" else self.classes
        if not number or number in known:
            what = (
                f"The id {number!r} occurs twice in {name!r}."
                if number
                else f"An entry of {name!r} has no id."
            )
            raise DataError(what, where=where, fix="Give every entry an id of its own.")
        if name == "images":
            self.images[number] = _image(number, entry)
        else:
            self.classes[number] = str(entry.get("name") or number)

    def refuse(self, where: str) -> None:
        """Raise if this is no file of instances."""
        missing = [
            name
            for name, found in (("images", self.images), ("annotations", self.ids))
            if not found
        ]
        if missing or not self.classes:
            missing += [] if self.classes else ["categories"]
            raise DataError(
                f"The file is no COCO file of instances: there is nothing under {', '.join(missing)}.",
                where=where,
                fix="Point to a file such as instances_val2017.json.",
            )
        repeated = len(self.ids) - len(set(self.ids))
        if repeated:
            raise DataError(
                f"{repeated} ids of annotations occur more than once.",
                where=where,
                fix="Give every annotation its own id.",
            )

    def table(self) -> CocoTable:
        places = {number: place for place, number in enumerate(self.images)}
        owners = np.array([places.get(owner, len(places)) for owner in self.owners], dtype=np.int64)
        order = np.argsort(owners, kind="stable")
        used, counts = np.unique(owners, return_counts=True)
        listed = list(self.images.values())
        unknown = CocoImage(image_id="", name="", size=None)
        new_place = (
            {int(old): new for new, old in enumerate(order.tolist())} if self.attributes else {}
        )
        return CocoTable(
            classes=self.classes,
            images=tuple(
                listed[place] if place < len(listed) else unknown for place in used.tolist()
            ),
            starts=np.concatenate([[0], np.cumsum(counts)]).astype(np.int64),
            corners=np.frombuffer(self.corners, dtype=np.float64).reshape(-1, COORDINATES)[order],
            categories=tuple(self.categories[place] for place in order),
            ids=tuple(self.ids[place] for place in order),
            is_crowd=np.frombuffer(self.is_crowd, dtype=np.int8)[order] != 0,
            attributes={new_place[place]: values for place, values in self.attributes.items()},
        )

    def _take_box(self, entry: dict[str, object]) -> None:
        place = len(self.ids)
        self.ids.append(_id(entry.get("id")) or f"unnumbered {place + 1}")
        self.owners.append(self._word(_id(entry.get("image_id"))))
        self.categories.append(self._word(_id(entry.get("category_id"))))
        self.corners.extend(_corners(entry.get("bbox")))
        self.is_crowd.append(1 if entry.get("iscrowd") else 0)
        given = entry.get("attributes")
        if isinstance(given, dict):
            kept: dict[str, Value] = {
                str(name): value
                for name, value in given.items()
                if isinstance(value, str | int | float | bool)
            }
            if kept:
                self.attributes[place] = kept

    def _word(self, text: str) -> str:
        # One string object for all that are equal.
        return self._words.setdefault(text, text)


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
