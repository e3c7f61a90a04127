"""Pictures that are already in memory."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from io import BytesIO
from typing import ClassVar

import numpy as np
from PIL import Image

from weakspot.core.arrays import AnyArray
from weakspot.core.dataset import RawSample, Split
from weakspot.ingest.cells import CellError, label_cell, metadata_kind, metadata_value, probability_items, split_cell, wider_kind
from weakspot.ingest.fingerprints import fingerprint_of_values
from weakspot.ingest.problems import Problems

_CHANNELS = (1, 3, 4)
_GREY, _COLOUR = 2, 3


@dataclass(frozen=True, kw_only=True, eq=False)
class ArraySource:
    """Pictures as arrays or Pillow pictures; they are handed on as PNG, which loses nothing.

    Args:
        pictures: uint8 array [n, height, width, 3] or [n, height, width], or a sequence of arrays or Pillow pictures.
        labels: a label, or a sequence of labels, for every picture; None for unlabelled.
        splits: a split for every picture.
        predictions: a predicted label, or a sequence of them, for every picture.
        probabilities: probabilities [n, c], with `class_names` in the order of the columns.
        class_names: the classes, in the order of label codes and probability columns.
        metadata: free columns, each with a value for every picture.
        default_split: split of pictures that have none.
    """

    kind: ClassVar[str] = "arrays"
    location: ClassVar[str] = "arrays in memory"
    pictures: AnyArray | Sequence[AnyArray | Image.Image]
    labels: Sequence[object] | AnyArray | None = None
    splits: Sequence[str | None] | None = None
    predictions: Sequence[object] | AnyArray | None = None
    probabilities: Sequence[object] | AnyArray | None = None
    class_names: tuple[str, ...] | None = None
    metadata: Mapping[str, Sequence[object] | AnyArray] = field(default_factory=dict)
    default_split: Split | None = None

    def fingerprint(self) -> str:
        """Return a hash over pixels and columns."""
        columns = [self.labels, self.splits, self.predictions, self.probabilities, *self.metadata.values()]
        listed = [None if column is None else [_plain(value) for value in column] for column in columns]
        pixels = (np.ascontiguousarray(np.asarray(picture)).tobytes() for picture in self.pictures)
        shapes = [np.asarray(picture).shape for picture in self.pictures]
        return fingerprint_of_values(
            [self.kind, shapes, self.class_names, sorted(self.metadata), self.default_split, *listed, *pixels]
        )

    def count(self) -> int:
        """Return the number of pictures."""
        return len(self.pictures)

    def read(self, start: int = 0) -> Iterator[RawSample]:
        """Yield samples from position `start` on."""
        kinds = self._checked
        for place in range(start, len(self.pictures)):
            split = split_cell(self._value(self.splits, place)) or self.default_split
            predicted = self._named(self.predictions, place)
            yield RawSample(
                key=f"picture {place + 1}",
                data=encode_png(self.pictures[place]),
                labels=self._named(self.labels, place),
                split=split.value if split else None,
                predictions=None if self._value(self.predictions, place) is None else predicted,
                probabilities=self._probabilities_at(place),
                metadata={name: metadata_value(_plain(column[place]), kinds[name]) for name, column in self.metadata.items()},
            )

    @cached_property
    def _checked(self) -> dict[str, str | None]:
        problems = Problems()
        self._check_lengths(problems)
        problems.raise_if_any(what="The arrays do not fit together.", where=self.location)
        for place, picture in enumerate(self.pictures):
            row = f"picture {place + 1}"
            _note(partial(check_pixels, picture), problems, row)
            _note(partial(self._check_columns, place), problems, row)
        problems.raise_if_any(what="The arrays cannot be used.", where=self.location, fix="Correct these, then run again.")
        return {name: self._kind_of(column) for name, column in self.metadata.items()}

    def _check_lengths(self, problems: Problems) -> None:
        columns = {
            "labels": self.labels,
            "splits": self.splits,
            "predictions": self.predictions,
            "probabilities": self.probabilities,
        }
        for name, column in (*columns.items(), *self.metadata.items()):
            if column is not None and len(column) != len(self.pictures):
                problems.add(f"There are {len(self.pictures)} pictures but {len(column)} values of {name!r}.")
        if self.probabilities is not None and self.class_names is None:
            problems.add("Probabilities need class_names in the order of their columns.")
        if len(self.pictures) == 0:
            problems.add("There are no pictures.")

    def _check_columns(self, place: int) -> None:
        split_cell(self._value(self.splits, place))
        self._named(self.labels, place)
        self._named(self.predictions, place)
        self._probabilities_at(place)

    def _kind_of(self, column: Sequence[object] | AnyArray) -> str | None:
        kind: str | None = None
        for value in column:
            kind = wider_kind(kind, metadata_kind(_plain(value), is_text=False))
        return kind

    def _value(self, column: Sequence[object] | AnyArray | None, place: int) -> object:
        return None if column is None else _plain(column[place])

    def _named(self, column: Sequence[object] | AnyArray | None, place: int) -> tuple[str, ...]:
        value = self._value(column, place)
        labels = label_cell(value, many=False)
        if self.class_names is None or isinstance(value, str):
            return labels
        if any(not label.isdigit() or int(label) >= len(self.class_names) for label in labels if label not in self.class_names):
            raise CellError(f"The label {value!r} is none of the {len(self.class_names)} classes.")
        return tuple(self.class_names[int(label)] if label.isdigit() else label for label in labels)

    def _probabilities_at(self, place: int) -> dict[str, float] | None:
        items = probability_items(self._value(self.probabilities, place))
        if items is None or isinstance(items, dict):
            return items
        names = self.class_names or ()
        if len(items) != len(names):
            raise CellError(f"{len(items)} probabilities do not fit {len(names)} classes.")
        return dict(zip(names, items, strict=True))


def check_pixels(picture: AnyArray | Image.Image) -> None:
    """Raise CellError when pixels cannot be taken as they are."""
    if isinstance(picture, Image.Image):
        return
    if picture.dtype != np.uint8:
        raise CellError(f"Pixels are {picture.dtype}, not uint8; scale them to 0..255 and round.")
    if picture.ndim != _GREY and not (picture.ndim == _COLOUR and picture.shape[-1] in _CHANNELS):
        raise CellError(f"A picture of shape {picture.shape} is neither [height, width] nor [height, width, 3].")
    if 0 in picture.shape:
        raise CellError(f"A picture of shape {picture.shape} has no pixels.")


def encode_png(picture: AnyArray | Image.Image) -> bytes:
    """Return a picture as PNG."""
    if not isinstance(picture, Image.Image):
        pixels = picture[..., 0] if picture.ndim == _COLOUR and picture.shape[-1] == 1 else picture
        picture = Image.fromarray(np.ascontiguousarray(pixels))
    if picture.mode not in ("1", "L", "LA", "P", "RGB", "RGBA", "I;16"):
        picture = picture.convert("RGB")
    buffer = BytesIO()
    picture.save(buffer, "PNG", compress_level=1)
    return buffer.getvalue()


def _note(check: Callable[[], None], problems: Problems, row: str) -> None:
    try:
        check()
    except CellError as error:
        problems.add(str(error), row=row)


def _plain(value: object) -> object:
    return value.tolist() if isinstance(value, (np.ndarray, np.generic)) else value
