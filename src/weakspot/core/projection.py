"""The learnt text side of a frozen image encoder: sentence embeddings to its image space."""

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

    Letters: *s* length of a sentence embedding, *d* of an image embedding, *h* hidden
    units (0 for a linear map).

    Attributes:
        image_mean: Mean unit image embedding [d]; `centre` takes it away.
        text_mean: Mean sentence embedding [s]; `apply` takes it away.
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
        wrong = {
            name: getattr(self, name).shape
            for name, shape in expected.items()
            if getattr(self, name).shape != shape
        }
        if wrong:
            raise ModelError(
                "The arrays of a text projection do not fit together.",
                given=wrong,
                fix=f"Expected {expected}.",
            )

    @property
    def sentence_dimension(self) -> int:
        """Length of the sentence embeddings that go in."""
        return int(self.linear.shape[0])

    @property
    def dimension(self) -> int:
        return int(self.linear.shape[1])

    def apply(self, sentence_embeddings: AnyArray) -> FloatArray:
        """Map sentence embeddings [m, s] to unit vectors [m, d] of the centred image space."""
        given = np.asarray(sentence_embeddings, dtype=np.float32)
        _require_width(given, self.sentence_dimension, "sentence embeddings")
        centred = given - self.text_mean
        hidden = np.maximum(centred @ self.hidden_in + self.hidden_bias, 0.0)
        return unit_rows(centred @ self.linear + hidden @ self.hidden_out + self.bias)

    def centre(self, image_embeddings: AnyArray) -> FloatArray:
        """Scale image embeddings [n, d] to length one, take the mean away, scale again.

        The dot product of a centred image embedding and an applied sentence embedding
        is their similarity.
        """
        _require_width(np.asarray(image_embeddings), self.dimension, "image embeddings")
        return unit_rows(unit_rows(image_embeddings) - self.image_mean)

    def uncentre(self, centred: AnyArray) -> FloatArray:
        """Undo `centre`: return the unit image embeddings [n, d] that it was given, whatever their length was.

        A centred embedding is the image embedding less the mean, scaled; the scale is the one at which the image embedding has
        length one, the positive root of a quadratic.
        """
        values = np.asarray(centred, dtype=np.float64)
        _require_width(values, self.dimension, "centred embeddings")
        mean = self.image_mean.astype(np.float64)
        along = values @ mean
        scale = -along + np.sqrt(along**2 + 1.0 - mean @ mean)
        return unit_rows(values * scale[:, None] + mean)

    def save(
        self, path: Path, *, extra: Mapping[str, AnyArray] | None = None, half: bool = True
    ) -> None:
        """Write the arrays to an `.npz` file, in one atomic step.

        Args:
            path: The file to write.
            extra: Further arrays to keep in the same file.
            half: Store weights as float16, which halves the file.
        """
        kind = np.float16 if half else np.float32
        arrays: dict[str, AnyArray] = {
            field.name: getattr(self, field.name).astype(kind) for field in fields(self)
        }
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
            raise ModelError(
                "A text projection file lacks arrays.",
                where=str(path),
                given=missing,
                fix="Learn it again.",
            )
        return cls(**{field.name: stored[field.name].astype(np.float32) for field in fields(cls)})


def read_arrays(path: Path) -> dict[str, AnyArray]:
    """Read every array of an `.npz` file, without pickle."""
    try:
        with path.open("rb") as stream, np.load(stream, allow_pickle=False) as stored:
            return {name: stored[name] for name in stored.files}
    except (OSError, ValueError, zipfile.BadZipFile) as problem:
        what = "A weights file cannot be read."
        raise ModelError(
            what, where=str(path), given=str(problem), fix="Fetch or learn it again."
        ) from problem


def _require_width(embeddings: AnyArray, width: int, what: str) -> None:
    rank = 2
    if embeddings.ndim != rank or embeddings.shape[1] != width:
        raise ModelError(
            f"The {what} have the wrong shape.",
            given=embeddings.shape,
            fix=f"Give an array of shape [rows, {width}].",
        )
