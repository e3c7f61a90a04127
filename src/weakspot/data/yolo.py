"""YOLO detection data: each box of the label files is a sample; `data.yaml` names folders and classes.

Everything in `data.yaml` is read as text, because a full YAML reader would turn class names such as `no` and `on` into truth values.
"""

import posixpath
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from weakspot.core.dataset import Split
from weakspot.core.errors import DataError
from weakspot.data.boxes import Box, BoxedImage, BoxSource, Corners
from weakspot.data.image_folder import is_image_name
from weakspot.data.locations import (
    ListedFile,
    UnreadableLocationError,
    file_facts,
    is_folder,
    is_there,
    join_location,
    list_files,
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

SPLIT_KEYS = ("train", "val", "test")


DataFile = tuple[str, Mapping[str, tuple[str, ...]], Mapping[int, str]]
"""The folder that others start at (empty: that of the file), files or folders of images by key, and class name by number."""


def parse_data_file(text: str, *, where: str) -> DataFile:
    """Read the text of a data file.

    Raises:
        DataError: naming what cannot be read, or what is missing.
    """
    values = _values(text)
    if values is None:
        raise DataError(
            "The data file is no YAML mapping.", where=where, fix="Write `key: value`, one a line."
        )
    splits = {key: tuple(_listed(key, values[key], where)) for key in SPLIT_KEYS if values.get(key)}
    names = _class_names(values.get("names") or "", where)
    if not splits or not names:
        missing = "names of classes" if splits else "train, val or test"
        fix = "Write names, and at least one of train, val and test."
        raise DataError(f"The data file has no {missing}.", where=where, fix=fix)
    path = values.get("path", "")
    return path if isinstance(path, str) else "", splits, names


def looks_like_data_file(text: str) -> bool:
    """Return whether text has the keys of a data file at its top: names, and train or val."""
    keys = set(_values(text) or ())
    return "names" in keys and bool(keys & {"train", "val"})


def _values(text: str) -> dict[str, Any] | None:
    """Return what stands under every key, all of it as text, lists and mappings; None if the text is no mapping."""
    import yaml

    try:
        values = yaml.load(text, Loader=yaml.BaseLoader)
    except yaml.YAMLError:
        return None
    return values if isinstance(values, dict) else None


def _listed(key: str, value: Any, where: str) -> list[str]:
    items: list[str] = value if isinstance(value, list) else [value]
    if all(isinstance(item, str) for item in items):
        return items
    raise DataError(
        f"The value of {key!r} in the data file cannot be read.",
        where=where,
        given=value,
        fix="Write it as a word, as [a, b], or as one `- name` or `0: name` a line.",
    )


def _class_names(value: object, where: str) -> dict[int, str]:
    if not isinstance(value, dict):
        return dict(enumerate(_listed("names", value, where))) if value else {}
    if not all(str(number).isdigit() for number in value):
        fix = "Write them as 0: name."
        raise DataError(
            "The classes under names are not numbered.", where=where, given=list(value)[:5], fix=fix
        )
    return dict(zip(map(int, value), _listed("names", list(value.values()), where), strict=True))


_BOX_NUMBERS = 4
_MIN_POLYGON_NUMBERS = 6
_DATA_FILES = ("data.yaml", "data.yml", "dataset.yaml", "dataset.yml")
_NOWHERE = float("nan")
_NOT_A_BOX: Corners = (_NOWHERE, _NOWHERE, _NOWHERE, _NOWHERE)


def yolo_data_file(folder: str) -> str | None:
    for name in _DATA_FILES:
        location = join_location(folder, name)
        if is_there(location) and is_yolo_file(location):
            return location
    return None


def is_yolo_file(location: str) -> bool:
    try:
        return looks_like_data_file(read_anew(location).decode("utf-8", "replace"))
    except UnreadableLocationError:
        return False


@dataclass(frozen=True, kw_only=True)
class YoloSource(BoxSource):
    """Boxes of a YOLO data set, each cut out of its image; polygons count as the box around them.

    The location is the data file, usually `data.yaml`, or the folder that holds it; its keys train, val and test tell the split.
    Label files lie beside images, or in a folder `labels` where images lie in `images`. Images without one have no boxes.
    """

    kind: ClassVar[str] = "yolo"

    def fingerprint(self) -> str:
        content = fingerprint_of_files(
            [self._data_location], self.kind, self.boxes, self.default_split, self.fractions
        )
        labels = (
            file_facts(place)
            for file, _ in self._listed
            if is_there(place := label_location(file.location))
        )
        images = fingerprint_of_listing(file for file, _ in self._listed)
        return fingerprint_of_values([content, images, fingerprint_of_listing(labels)])

    def count(self) -> int:
        return int(self._starts[-1])

    def boxed_images(self, start: int) -> Iterator[BoxedImage]:
        begin = int(np.searchsorted(self._starts, start, side="right")) - 1
        root = self._root
        for place in range(begin, len(self._images)):
            file, split, lines = self._images[place]
            name = _name(file, root)
            skipped = max(0, start - int(self._starts[place]))
            boxes = [self._box(name, number, line) for number, line in enumerate(lines, start=1)]
            yield BoxedImage(
                location=file.location,
                name=name,
                image_id=name,
                split=split,
                size=None,
                boxes=tuple(boxes[skipped:]),
                n_boxes=len(boxes),
            )

    def _box(self, image: str, number: int, line: str) -> Box:
        code, corners = parse_line(line)
        label = self._data[2].get(code)
        reason, detail = "", ""
        if corners is None:
            reason, detail = "bad-box", f"line {number}: {line[:80]}"
        elif label is None:
            reason, detail = "unknown-class", f"line {number}: class {code}"
        return Box(
            key=f"{image}/{number}",
            annotation_id=str(number),
            category_id=str(code),
            label=label,
            corners=_NOT_A_BOX if corners is None else corners,
            are_shares=True,
            reason=reason,
            detail=detail,
        )

    @cached_property
    def _data_location(self) -> str:
        if not is_folder(self.location):
            return self.location
        found = yolo_data_file(self.location)
        if found is None:
            raise DataError(
                "The folder holds no data file of a YOLO data set.",
                where=shown_location(self.location),
                fix="Point to the file with the keys train, val and names.",
            )
        return found

    @cached_property
    def _data(self) -> DataFile:
        text = read_anew(self._data_location).decode("utf-8-sig", "replace")
        return parse_data_file(text, where=shown_location(self._data_location))

    @cached_property
    def _root(self) -> str:
        path, _, _ = self._data
        return join_location(parent_location(self._data_location), self.boxes.images or path)

    @cached_property
    def _listed(self) -> tuple[tuple[ListedFile, Split | None], ...]:
        found: list[tuple[ListedFile, Split | None]] = []
        _, splits, _ = self._data
        for key, places in splits.items():
            for place in places:
                found += [(file, parse_split(key)) for file in _images_at(self._place(place))]
        if not found:
            raise DataError(
                "The data file points to no images.",
                where=shown_location(self._data_location),
                given={key: list(places) for key, places in splits.items()},
                fix="Correct path, train, val and test there, or set [boxes] images to the folder they start at.",
            )
        return tuple(found)

    def _place(self, given: str) -> str:
        beside = parent_location(self._data_location)
        # Some tools write paths that start one folder below the data file.
        choices = [
            join_location(self._root, given),
            join_location(beside, given),
            join_location(beside, given.removeprefix("../")),
        ]
        for choice in choices:
            if is_there(choice):
                return choice
        raise DataError(
            "There is nothing where the data file points to.",
            where=shown_location(self._data_location),
            given=given,
            fix="Correct path, train, val and test there, or set [boxes] images to the folder they start at.",
        )

    @cached_property
    def _images(self) -> tuple[tuple[ListedFile, Split | None, tuple[str, ...]], ...]:
        """Return the images that have boxes, each with its split and the lines of its label file."""
        labelled = ((file, split, _label_lines(file.location)) for file, split in self._listed)
        return tuple(image for image in labelled if image[2])

    @cached_property
    def _starts(self) -> "np.ndarray[tuple[int], np.dtype[np.int64]]":
        return np.concatenate([[0], np.cumsum([len(lines) for *_, lines in self._images])]).astype(
            np.int64
        )


def label_location(image: str) -> str:
    """Return where the labels of an image are.

    >>> label_location("data/images/val/a.jpg"), label_location("data/b.png")
    ('data/labels/val/a.txt', 'data/b.txt')
    """
    before, found, after = image.replace("\\", "/").rpartition("/images/")
    place = f"{before}/labels/{after}" if found else image
    return posixpath.splitext(place)[0] + ".txt"


def parse_line(line: str) -> tuple[int, Corners | None]:
    """Return class and left, top, width, height (shares of the image) of a line, None where it cannot be read.

    >>> parse_line("2 0.5 0.5 0.2 0.4")
    (2, (0.4, 0.3, 0.2, 0.4))
    """
    code, *words = line.split()
    try:
        numbers = [float(word) for word in words]
        number = int(float(code))
    except (ValueError, OverflowError):
        return -1, None
    if len(numbers) == _BOX_NUMBERS:
        across, down, wide, high = numbers
        return number, (across - wide / 2, down - high / 2, wide, high)
    if len(numbers) < _MIN_POLYGON_NUMBERS or len(numbers) % 2:
        return number, None
    left, top = min(numbers[::2]), min(numbers[1::2])
    return number, (left, top, max(numbers[::2]) - left, max(numbers[1::2]) - top)


def _label_lines(image: str) -> tuple[str, ...]:
    try:
        return _lines_at(label_location(image))
    except UnreadableLocationError as error:
        if error.reason == "missing-file":
            return ()
        raise


def _lines_at(location: str) -> tuple[str, ...]:
    text = read_anew(location).decode("utf-8-sig", "replace")
    return tuple(line.strip() for line in text.splitlines() if line.strip())


def _images_at(location: str) -> list[ListedFile]:
    if is_folder(location):
        return [file for file in list_files(location) if is_image_name(file.relative)]
    beside = parent_location(location)
    return [
        _fact(join_location(beside, name.removeprefix("./")))
        for name in _lines_at(location)
        if is_image_name(name)
    ]


def _fact(location: str) -> ListedFile:
    try:
        return file_facts(location)
    except UnreadableLocationError:
        # It is listed all the same, so that its boxes show up in the quarantine.
        return ListedFile(
            location=location, relative=location.rpartition("/")[2], size=-1, stamp=""
        )


def _name(file: ListedFile, root: str) -> str:
    """Return an image's path below the root of the data set, with `/` between parts."""
    place, top = (
        posixpath.normpath(file.location.replace("\\", "/")),
        posixpath.normpath(root.replace("\\", "/")),
    )
    return place.removeprefix(f"{top}/")
