"""What somebody has of a classifier's answers, checked and put in one form."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from weakspot.core.arrays import FloatArray
from weakspot.core.errors import DataError, raise_all
from weakspot.findings.columns import arrow_table, is_missing, plain_values

OWN = ("key", "path", "label", "labels", "prediction", "predictions", "probabilities", "split")
"""Columns that are written from arguments; a table of metadata may not have them."""


@dataclass(frozen=True, kw_only=True, eq=False)
class GivenSamples:
    """Samples as they were given, in their order.

    Args:
        labels: a label for every sample, or a list of labels.
        predictions: the same of the classifier.
        probabilities: [n, c], columns in the order of `class_names`.
        class_names: the classes; empty if nobody said.
        images: paths, Pillow images or arrays.
        embeddings: [n, d].
        metadata: free columns.
        splits: a split for every sample.
    """

    labels: list[Any]
    predictions: list[Any] | None = None
    probabilities: FloatArray | None = None
    class_names: tuple[str, ...] = ()
    images: Sequence[Any] | None = None
    embeddings: FloatArray | None = None
    metadata: pa.Table | None = None
    splits: list[str | None] | None = None
    groups: list[Any] | None = None

    def __len__(self) -> int:
        """Return the number of samples."""
        return len(self.labels)

    @property
    def is_multi_label(self) -> bool:
        return any(isinstance(value, (list, tuple, set, frozenset)) for value in self.labels)


def gather(  # noqa: PLR0913 - one argument for everything that may be there
    *,
    labels: object,
    predictions: object = None,
    probabilities: object = None,
    class_names: Sequence[object] | None = None,
    images: object = None,
    embeddings: object = None,
    metadata: object = None,
    splits: object = None,
    groups: object = None,
) -> GivenSamples:
    """Return what was given in one form.

    Raises:
        DataError: naming everything that does not fit together.
    """
    true = plain_values(labels, "labels")
    shares = None if probabilities is None else _matrix(probabilities, "probabilities")
    given = {
        "predictions": None if predictions is None else plain_values(predictions, "predictions"),
        "splits": None if splits is None else plain_values(splits, "splits"),
        "groups": None if groups is None else plain_values(groups, "groups"),
    }
    table = None if metadata is None else arrow_table(metadata)
    numbers = None if embeddings is None else _matrix(embeddings, "embeddings")
    shown = None if images is None else _images(images)
    lengths = {
        **{name: len(values) for name, values in given.items() if values is not None},
        **({} if shares is None else {"probabilities": len(shares)}),
        **({} if numbers is None else {"embeddings": len(numbers)}),
        **({} if shown is None else {"images": len(shown)}),
        **({} if table is None else {"metadata": table.num_rows}),
    }
    taken = [] if table is None else [name for name in OWN if name in table.column_names]
    raise_all(
        [
            f"There are {len(true)} labels but {number} of {name!r}."
            for name, number in lengths.items()
            if number != len(true)
        ]
        + [
            f"'metadata' has a column {name!r}, which is made of the other arguments."
            for name in taken
        ],
        error=DataError,
        what="What was given does not fit together:",
        fix="Give one of each for every sample, in one order; rename columns that are in the way.",
    )
    names = _class_names(class_names, true, given["predictions"], shares)
    answers = given["predictions"]
    if answers is None and shares is not None:
        answers = [names[place] for place in shares.argmax(axis=1)]
    return GivenSamples(
        labels=[_named(value, names) for value in true],
        predictions=None if answers is None else [_named(value, names) for value in answers],
        probabilities=shares,
        class_names=names,
        images=shown,
        embeddings=numbers,
        metadata=table,
        splits=given["splits"],
        groups=given["groups"],
    )


def _matrix(values: Any, name: str) -> FloatArray:
    raw = values.detach().cpu().numpy() if hasattr(values, "detach") else values
    try:
        matrix = np.asarray(raw, dtype=np.float32)
    except (TypeError, ValueError) as error:
        raise DataError(f"'{name}' is no table of numbers.", given=type(values).__name__) from error
    if matrix.ndim != 2:  # noqa: PLR2004 - rows and columns
        raise DataError(
            f"'{name}' has {matrix.ndim} dimensions instead of 2.",
            given=matrix.shape,
            fix="Give one row for every sample.",
        )
    return matrix


def _images(images: Any) -> Sequence[Any]:
    if isinstance(images, (str, bytes, os.PathLike)):
        raise DataError(
            "'images' is one path, not one for every sample.",
            given=os.fspath(images),
            fix="Give a list of paths, or make a project of the folder: weakspot init --data FOLDER.",
        )
    if hasattr(images, "iloc"):
        return list(images.tolist())
    return images if hasattr(images, "__getitem__") and hasattr(images, "__len__") else list(images)


def _class_names(
    given: Sequence[object] | None,
    labels: Sequence[Any],
    predictions: Sequence[Any] | None,
    probabilities: FloatArray | None,
) -> tuple[str, ...]:
    if given is not None:
        names = tuple(str(name) for name in plain_values(given, "class_names"))
        if probabilities is not None and probabilities.shape[1] != len(names):
            raise DataError(
                f"There are {probabilities.shape[1]} columns of probabilities but {len(names)} class names."
            )
        return names
    if probabilities is None:
        return ()
    n_columns = probabilities.shape[1]
    seen = {
        one
        for value in (*labels, *(predictions or ()))
        for one in (value if isinstance(value, (list, tuple, set)) else (value,))
        if one is not None
    }
    if all(isinstance(one, int) and 0 <= one < n_columns for one in seen):
        return tuple(str(code) for code in range(n_columns))
    if len(seen) == n_columns and all(isinstance(one, str) for one in seen):
        return tuple(sorted(seen))
    raise DataError(
        f"It is not clear which classes the {n_columns} columns of probabilities are.",
        fix="Give class_names, in the order of the columns.",
    )


def _named(value: Any, names: Sequence[str]) -> Any:
    if isinstance(value, (list, tuple, set, frozenset)):
        return [_named(one, names) for one in value]
    if is_missing(value):
        return None
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, int) and not isinstance(value, bool) and names:
        if str(value) in names:
            return str(value)
        if 0 <= value < len(names):
            return names[value]
        raise DataError(
            f"The label {value} is none of the {len(names)} classes.",
            fix="Correct it, or give all class names.",
        )
    return str(value)


def as_columns(train: Mapping[str, object]) -> dict[str, object]:
    """Return the arguments of training samples; what they cannot have is named.

    Raises:
        DataError: if one is not known, or labels are missing.
    """
    known = ("labels", "predictions", "probabilities", "images", "embeddings", "metadata", "groups")
    unknown = [name for name in train if name not in known]
    if unknown or "labels" not in train:
        raise DataError(
            "'train' has no labels." if not unknown else f"'train' has no part {unknown[0]!r}.",
            given=list(train),
            fix=f"Give a dict with labels and some of: {', '.join(known[1:])}.",
        )
    return dict(train)
