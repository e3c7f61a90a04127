"""The learnt text side of a frozen image encoder: sentence vectors to its image space."""

import os
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Self

import numpy as np

from weakspot.core.arrays import AnyArray, FloatArray, unit_rows
from weakspot.core.errors import ModelError


@dataclass(frozen=True, kw_only=True, eq=False)
class TextProjection:
    """A linear map with an optional hidden layer beside it.

    Letters: *s* length of a sentence vector, *d* of an image vector, *h* hidden
    units (0 for a linear map).

    Attributes:
        image_mean: Mean unit image vector [d]; `centre` takes it away.
        text_mean: Mean sentence vector [s]; `apply` takes it away.
        linear: Weights [s, d] of the direct path.
        bias: Offset [d].
        hidden_in: Weights [s, h] into the hidden layer.
        hidden_bias: Offset [h] of the hidden layer.
        hidden_out: Weights [h, d] out of it.
    """

    image_mean: FloatArray
    text_mean: FloatArray
    linear: FloatArray
    bias: FloatArray
    hidden_in: FloatArray
    hidden_bias: FloatArray
    hidden_out: FloatArray

    def __post_init__(self) -> None:
        sentence, image = self.linear.shape
        hidden = len(self.hidden_bias)
        expected = {
            "image_mean": (image,),
            "text_mean": (sentence,),
            "bias": (image,),
            "hidden_in": (sentence, hidden),
            "hidden_out": (hidden, image),
        }
        wrong = {name: getattr(self, name).shape for name, shape in expected.items() if getattr(self, name).shape != shape}
        if wrong:
            raise ModelError("The arrays of a text projection do not fit together.", given=wrong, fix=f"Expected {expected}.")

    @property
    def sentence_dimension(self) -> int:
        """Length of the sentence vectors that go in."""
        return int(self.linear.shape[0])

    @property
    def dimension(self) -> int:
        """Length of the vectors that come out."""
        return int(self.linear.shape[1])

    def apply(self, sentence_vectors: AnyArray) -> FloatArray:
        """Map sentence vectors [m, s] to unit vectors [m, d] of the centred image space."""
        given = np.asarray(sentence_vectors, dtype=np.float32)
        _require_width(given, self.sentence_dimension, "sentence vectors")
        centred = given - self.text_mean
        hidden = np.maximum(centred @ self.hidden_in + self.hidden_bias, 0.0)
        return unit_rows(centred @ self.linear + hidden @ self.hidden_out + self.bias)

    def centre(self, image_vectors: AnyArray) -> FloatArray:
        """Scale image vectors [n, d] to length one, take the mean away, scale again.

        The dot product of a centred image vector and an applied sentence vector
        is their similarity.
        """
        _require_width(np.asarray(image_vectors), self.dimension, "image vectors")
        return unit_rows(unit_rows(image_vectors) - self.image_mean)

    def uncentre(self, centred: AnyArray) -> FloatArray:
        """Undo `centre`: return the unit image vectors [n, d] that it was given, whatever their length was.

        A centred vector is the image vector less the mean, scaled; the scale is the one at which the image vector has
        length one, the positive root of a quadratic.
        """
        values = np.asarray(centred, dtype=np.float64)
        _require_width(values, self.dimension, "centred vectors")
        mean = self.image_mean.astype(np.float64)
        along = values @ mean
        scale = -along + np.sqrt(along**2 + 1.0 - mean @ mean)
        return unit_rows(values * scale[:, None] + mean)

    def recentre(self, centred: AnyArray) -> FloatArray:
        """Centre by the mean of the given vectors [n, d] in place of the saved one.

        It helps when the images are unlike the photographs that the text side was learnt from, and there are many of them.
        """
        images = self.uncentre(centred)
        return unit_rows(images - images.mean(axis=0))

    def save(self, path: Path, *, extra: Mapping[str, AnyArray] | None = None, half: bool = True) -> None:
        """Write the arrays to an `.npz` file, in one atomic step.

        Args:
            path: The file to write.
            extra: Further arrays to keep in the same file.
            half: Store weights as float16, which halves the file.
        """
        kind = np.float16 if half else np.float32
        arrays: dict[str, AnyArray] = {field.name: getattr(self, field.name).astype(kind) for field in fields(self)}
        for name in ("image_mean", "text_mean", "bias", "hidden_bias"):
            arrays[name] = getattr(self, name).astype(np.float32)
        arrays.update(extra or {})
        path.parent.mkdir(parents=True, exist_ok=True)
        partial = path.with_name(path.name + ".partial")
        with partial.open("wb") as stream:
            np.savez_compressed(stream, allow_pickle=False, **arrays)
        os.replace(partial, path)

    @classmethod
    def load(cls, path: Path) -> Self:
        """Read what `save` wrote; nothing in the file is ever run."""
        stored = read_arrays(path)
        missing = [field.name for field in fields(cls) if field.name not in stored]
        if missing:
            raise ModelError("A text projection file lacks arrays.", where=str(path), given=missing, fix="Learn it again.")
        return cls(**{field.name: stored[field.name].astype(np.float32) for field in fields(cls)})


def read_arrays(path: Path) -> dict[str, AnyArray]:
    """Read every array of an `.npz` file, without pickle."""
    try:
        with path.open("rb") as stream, np.load(stream, allow_pickle=False) as stored:
            return {name: stored[name] for name in stored.files}
    except (OSError, ValueError, zipfile.BadZipFile) as problem:
        what = "A weights file cannot be read."
        raise ModelError(what, where=str(path), given=str(problem), fix="Fetch or learn it again.") from problem


def _require_width(vectors: AnyArray, width: int, what: str) -> None:
    rank = 2
    if vectors.ndim != rank or vectors.shape[1] != width:
        raise ModelError(f"The {what} have the wrong shape.", given=vectors.shape, fix=f"Give an array of shape [rows, {width}].")
