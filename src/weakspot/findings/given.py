"""What somebody has of a classifier's answers, checked and put in one form."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from weakspot.core.arrays import FloatArray
from weakspot.core.errors import DataError, raise_all
from weakspot.findings.columns import arrow_table, check_order, plain_values
from weakspot.findings.labels import is_many, label_values, named, one_form

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
        return is_many(self.labels)


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
    check_order({"labels": labels, "predictions": predictions, "metadata": metadata})
    true = label_values(labels, "labels")
    shares = None if probabilities is None else _matrix(probabilities, "probabilities")
    given = {
        "predictions": None if predictions is None else label_values(predictions, "predictions"),
        "splits": None if splits is None else plain_values(splits, "splits"),
        "groups": None if groups is None else plain_values(groups, "groups"),
    }
    table = None if metadata is None else arrow_table(metadata)
    if table is not None and not table.num_columns:
        table = None
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
    told = [named(value, names) for value in true]
    said = None if answers is None else [named(value, names) for value in answers]
    return GivenSamples(
        labels=one_form(told),
        predictions=None if said is None else one_form(said, of_many=is_many(told)),
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
        with np.errstate(over="ignore"):
            matrix = np.asarray(raw, dtype=np.float32)
    except (TypeError, ValueError) as error:
        raise DataError(
            f"'{name}' is no table of numbers.",
            given=type(values).__name__,
            fix="Give one row of numbers, of one length, for every sample.",
        ) from error
    if matrix.ndim != 2:  # noqa: PLR2004 - rows and columns
        raise DataError(
            f"'{name}' has {matrix.ndim} dimensions instead of 2.",
            given=matrix.shape,
            fix="Give one row for every sample.",
        )
    if len(matrix) and not matrix.shape[1]:
        raise DataError(f"'{name}' has no columns.", given=matrix.shape, fix="Leave it out.")
    if len(matrix) and not np.isfinite(matrix).all(axis=1).any():
        raise DataError(
            f"Not one row of '{name}' consists of numbers that are finite in 32 bits.",
            fix="Give finite numbers; rows of NaN are taken as unknown.",
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
        names = tuple(str(name) for name in plain_values(_in_order(given), "class_names"))
        if probabilities is not None and probabilities.shape[1] != len(names):
            raise DataError(
                f"There are {probabilities.shape[1]} columns of probabilities but {len(names)} class names.",
                fix="Give one name for every column, in the order of the columns.",
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


def _in_order(names: object) -> object:
    """Return names by code, such as the `id2label` of transformers, in the order of the codes."""
    if not isinstance(names, Mapping):
        return names
    by_code = {str(code): name for code, name in names.items()}
    if set(by_code) != {str(code) for code in range(len(by_code))}:
        raise DataError(
            "'class_names' does not give a name to every code from 0.",
            given=list(names),
            fix="Give a list of names in the order of their codes.",
        )
    return [by_code[str(code)] for code in range(len(by_code))]
