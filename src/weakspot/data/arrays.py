"""Images that are already in memory."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from io import BytesIO
from itertools import islice
from typing import Any, ClassVar

import numpy as np
from PIL import Image

from weakspot.core.arrays import AnyArray
from weakspot.core.dataset import RawSample, Split
from weakspot.data.columns import ColumnRoles
from weakspot.data.rows import CellError, ClassNames, RowLayout, samples_of
from weakspot.data.source import Problems, fingerprint_of_values
from weakspot.data.table_source import Survey
from weakspot.data.tables import TableBatch, TableHeader

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
        columns = (*self._told.values(), *self.metadata.values())
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
        samples = samples_of(self._batch, self._layout, Problems())
        for place, sample in islice(enumerate(samples), start, None):
            yield replace(sample, data=encode_png(self.images[place]))

    @cached_property
    def _batch(self) -> TableBatch:
        """Return all columns as rows of a table."""
        self._check_lengths()
        known = {_column(name): values for name, values in self._told.items() if values is not None}
        columns = {
            name: [_plain(value) for value in values]
            for name, values in {**known, **self.metadata}.items()
        }
        return TableBatch(first_row=0, n_rows=len(self.images), columns=columns)

    @cached_property
    def _layout(self) -> RowLayout:
        """Return what every column means, after a look at everything."""
        problems, names = Problems(), self.class_names
        roles = {name: _column(name) for name, values in self._told.items() if values is not None}
        known = None if names is None else ClassNames(names=names, are_codes=True)
        layout = RowLayout(
            roles=ColumnRoles(
                labels=roles.get("labels"),
                predictions=roles.get("predictions"),
                split=roles.get("splits"),
                probabilities=roles.get("probabilities"),
                metadata=tuple(self.metadata),
            ),
            split=self.default_split,
            label_names=known,
            prediction_names=known,
            row_word="image",
        )
        for place, image in enumerate(self.images):
            try:
                check_pixels(image)
            except CellError as error:
                problems.add(str(error), row=layout.row_name(place))
        seen = Survey(
            header=TableHeader(names=tuple(self.metadata)), class_names=names, problems=problems
        )
        seen.n_rows.append(0)
        seen.look(self._batch, layout)
        seen.finish()
        problems.raise_if_any(
            what="The arrays cannot be used.",
            where=self.location,
            fix="Correct these, then run again.",
        )
        return replace(layout, metadata_kinds=seen.metadata_kinds, probability_names=names)

    @property
    def _told(self) -> dict[str, Sequence[Any] | AnyArray | None]:
        """Return what is told of every image, by argument."""
        names = ("labels", "splits", "predictions", "probabilities")
        return {name: getattr(self, name) for name in names}

    def _check_lengths(self) -> None:
        problems = Problems()
        for name, column in (*self._told.items(), *self.metadata.items()):
            if column is not None and len(column) != len(self.images):
                problems.add(
                    f"There are {len(self.images)} images but {len(column)} values of {name!r}."
                )
        if self.probabilities is not None and self.class_names is None:
            problems.add("Probabilities need class_names in the order of their columns.")
        if len(self.images) == 0:
            problems.add("There are no images.")
        problems.raise_if_any(what="The arrays do not fit together.", where=self.location)


def _column(argument: str) -> str:
    """Return the column of an argument; no free column is called so."""
    return f"{argument}="


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


def _plain(value: object) -> object:
    return value.tolist() if isinstance(value, (np.ndarray, np.generic)) else value
