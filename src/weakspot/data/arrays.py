"""Images that are already in memory."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from io import BytesIO
from typing import Any, ClassVar

import numpy as np
from PIL import Image

from weakspot.core.arrays import AnyArray
from weakspot.core.dataset import RawSample, Split
from weakspot.data.rows import (
    CellError,
    label_cell,
    metadata_kind,
    metadata_value,
    probability_items,
    split_cell,
    wider_kind,
)
from weakspot.data.source import Problems, fingerprint_of_values

_CHANNELS = (1, 3, 4)
_GREY, _COLOUR = 2, 3


@dataclass(frozen=True, kw_only=True, eq=False)
class SamplesInMemory:
    """Samples as columns in memory, each with one value a sample, in one order.

    Args:
        images: paths, Pillow images or arrays.
        labels: a label, or a sequence of labels, for every sample; None for unlabelled.
        splits: a split for every sample.
        predictions: a predicted label, or a sequence of them, for every sample.
        probabilities: probabilities [n, c], with `class_names` in the order of the columns.
        class_names: the classes, in the order of label codes and probability columns.
    """

    images: AnyArray | Sequence[Any] | None = None
    labels: Sequence[Any] | AnyArray | None = None
    splits: Sequence[str | None] | None = None
    predictions: Sequence[Any] | AnyArray | None = None
    probabilities: Sequence[Any] | AnyArray | None = None
    class_names: tuple[str, ...] | None = None


@dataclass(frozen=True, kw_only=True, eq=False)
class ArraySource(SamplesInMemory):
    """Images as arrays or Pillow images; they are handed on as PNG, which loses nothing.

    Args:
        images: uint8 array [n, height, width, 3] or [n, height, width], or a sequence of arrays or Pillow images.
        labels: a label, or a sequence of labels, for every image; None for unlabelled.
        splits: a split for every image.
        predictions: a predicted label, or a sequence of them, for every image.
        probabilities: probabilities [n, c], with `class_names` in the order of the columns.
        class_names: the classes, in the order of label codes and probability columns.
        metadata: free columns, each with a value for every image.
        default_split: split of images that have none.
    """

    kind: ClassVar[str] = "arrays"
    location: ClassVar[str] = "arrays in memory"
    images: AnyArray | Sequence[AnyArray | Image.Image]
    metadata: Mapping[str, Sequence[object] | AnyArray] = field(default_factory=dict)
    default_split: Split | None = None

    def fingerprint(self) -> str:
        columns = [
            self.labels,
            self.splits,
            self.predictions,
            self.probabilities,
            *self.metadata.values(),
        ]
        listed = [
            None if column is None else [_plain(value) for value in column] for column in columns
        ]
        pixels = (np.ascontiguousarray(np.asarray(image)).tobytes() for image in self.images)
        shapes = [np.asarray(image).shape for image in self.images]
        return fingerprint_of_values(
            [
                self.kind,
                shapes,
                self.class_names,
                sorted(self.metadata),
                self.default_split,
                *listed,
                *pixels,
            ]
        )

    def count(self) -> int:
        return len(self.images)

    def read(self, start: int = 0) -> Iterator[RawSample]:
        kinds = self._checked
        for place in range(start, len(self.images)):
            split = split_cell(self._value(self.splits, place)) or self.default_split
            predicted = self._named(self.predictions, place)
            yield RawSample(
                key=f"image {place + 1}",
                data=encode_png(self.images[place]),
                labels=self._named(self.labels, place),
                split=split.value if split else None,
                predictions=None if self._value(self.predictions, place) is None else predicted,
                probabilities=self._probabilities_at(place),
                metadata={
                    name: metadata_value(_plain(column[place]), kinds[name])
                    for name, column in self.metadata.items()
                },
            )

    @cached_property
    def _checked(self) -> dict[str, str | None]:
        problems = Problems()
        self._check_lengths(problems)
        problems.raise_if_any(what="The arrays do not fit together.", where=self.location)
        for place, image in enumerate(self.images):
            row = f"image {place + 1}"
            _note(partial(check_pixels, image), problems, row)
            _note(partial(self._check_columns, place), problems, row)
        problems.raise_if_any(
            what="The arrays cannot be used.",
            where=self.location,
            fix="Correct these, then run again.",
        )
        return {name: self._kind_of(column) for name, column in self.metadata.items()}

    def _check_lengths(self, problems: Problems) -> None:
        columns = {
            "labels": self.labels,
            "splits": self.splits,
            "predictions": self.predictions,
            "probabilities": self.probabilities,
        }
        for name, column in (*columns.items(), *self.metadata.items()):
            if column is not None and len(column) != len(self.images):
                problems.add(
                    f"There are {len(self.images)} images but {len(column)} values of {name!r}."
                )
        if self.probabilities is not None and self.class_names is None:
            problems.add("Probabilities need class_names in the order of their columns.")
        if len(self.images) == 0:
            problems.add("There are no images.")

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
        if any(
            not label.isdigit() or int(label) >= len(self.class_names)
            for label in labels
            if label not in self.class_names
        ):
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


def check_pixels(image: AnyArray | Image.Image) -> None:
    """Raise CellError when pixels cannot be taken as they are."""
    if isinstance(image, Image.Image):
        return
    if image.dtype != np.uint8:
        raise CellError(f"Pixels are {image.dtype}, not uint8; scale them to 0..255 and round.")
    if image.ndim != _GREY and not (image.ndim == _COLOUR and image.shape[-1] in _CHANNELS):
        raise CellError(
            f"An image of shape {image.shape} is neither [height, width] nor [height, width, 3]."
        )
    if 0 in image.shape:
        raise CellError(f"An image of shape {image.shape} has no pixels.")


def encode_png(image: AnyArray | Image.Image) -> bytes:
    if not isinstance(image, Image.Image):
        pixels = image[..., 0] if image.ndim == _COLOUR and image.shape[-1] == 1 else image
        image = Image.fromarray(np.ascontiguousarray(pixels))
    if image.mode not in ("1", "L", "LA", "P", "RGB", "RGBA", "I;16"):
        image = image.convert("RGB")
    buffer = BytesIO()
    image.save(buffer, "PNG", compress_level=1)
    return buffer.getvalue()


def _note(check: Callable[[], None], problems: Problems, row: str) -> None:
    try:
        check()
    except CellError as error:
        problems.add(str(error), row=row)


def _plain(value: object) -> object:
    return value.tolist() if isinstance(value, (np.ndarray, np.generic)) else value
