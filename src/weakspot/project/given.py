"""What somebody has of a classifier's answers in memory, checked, put in one form and made a project folder.

Lists, arrays, series, frames, labels as names or codes; the folder is as `weakspot init` would make it.
"""

import os
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from PIL import Image

from weakspot.core.arrays import AnyArray, FloatArray, IntArray
from weakspot.core.dataset import Split
from weakspot.core.errors import DataError, raise_all, tell_where
from weakspot.core.failures import ClassProblem, FailureCriterion, class_problems
from weakspot.core.run import StageProgress, no_stage_progress
from weakspot.core.samples import SampleSet
from weakspot.data.arrays import SamplesInMemory, encode_png
from weakspot.data.columns import ColumnRoles, resolve_columns
from weakspot.data.images import jpeg_at
from weakspot.data.locations import is_local, local_path
from weakspot.data.rows import label_cell
from weakspot.data.source import Problems
from weakspot.data.tables import TableHeader
from weakspot.project.project import Project
from weakspot.run.settings import Settings


def plain_values(column: object, name: str) -> list[Any]:
    """Return a list of Python values of any one-dimensional thing.

    Raises:
        DataError: if it is a single value.

    >>> plain_values(("a", "b"), "labels")
    ['a', 'b']
    """
    if isinstance(column, (Mapping, Set)) or _is_pandas(column):
        raise DataError(
            f"'{name}' is not a column: it has no one order of values.",
            given=type(column).__name__,
            fix="Give a list, an array or one column of the table.",
        )
    values = _listed(column)
    if isinstance(values, (str, bytes)) or not hasattr(values, "__iter__"):
        raise DataError(
            f"'{name}' is one value, not one for every sample.",
            given=type(column).__name__,
            fix="Give a list, an array or a column.",
        )
    return [value.tolist() if hasattr(value, "tolist") else value for value in values]


def _listed(column: Any) -> Any:
    if isinstance(column, np.ndarray) and column.dtype.kind in "mM":
        return column.astype(
            f"{column.dtype.kind}8[us]"
        ).tolist()  # nanoseconds become bare numbers
    for how in ("tolist", "to_pylist"):
        if hasattr(column, how):
            return getattr(column, how)()
    return column


def arrow_table(data: object) -> pa.Table:
    """Return a table of pandas, polars or pyarrow, a dict of columns or a list of rows as an Arrow table.

    Raises:
        DataError: if it is none of these, or its columns differ in length.
    """
    try:
        table = _as_table(data)
        return pa.table({name: _decoded(table.column(name)) for name in _once(table.column_names)})
    except (pa.ArrowException, TypeError, ValueError) as error:
        raise DataError(
            f"The table cannot be taken: {str(error).splitlines()[0]}",
            given=type(data).__name__,
            fix="Give every column one value for every sample.",
        ) from error


def _once(names: Iterable[object]) -> list[str]:
    """Return the names of columns as text, each once."""
    told = [str(name) for name in names]
    twice = next((name for place, name in enumerate(told) if name in told[:place]), None)
    if twice is not None:
        raise DataError("Two columns have one name.", given=twice, fix="Rename one of them.")
    if any(not name.strip() for name in told):
        raise DataError("A column has no name.", given=told, fix="Give it one.")
    return told


def is_table(data: object) -> bool:
    """Return whether something is a table rather than samples that are drawn one after another."""
    return (
        isinstance(data, (pa.Table, Mapping))
        or _is_pandas(data)
        or _is_lazy(data)
        or (hasattr(data, "__arrow_c_stream__") and not hasattr(data, "features"))
        or (isinstance(data, Sequence) and bool(data) and isinstance(data[0], Mapping))
    )


def check_order(parts: Mapping[str, object]) -> None:
    """Refuse parts whose rows have the same names in different orders; all others are taken row by row.

    Raises:
        DataError: naming the part.
    """
    indexes = [
        (name, part.index)
        for name, part in parts.items()
        if hasattr(part, "index") and hasattr(part.index, "equals")
    ]
    for name, index in indexes[1:]:
        first, other = indexes[0]
        if not index.equals(other) and len(index) == len(other) and set(index) == set(other):
            raise DataError(
                f"The rows of '{name}' are in another order than those of '{first}'.",
                given=[*index[:3]],
                fix=f"Sort one like the other: {name} = {name}.loc[{first}.index].",
            )


def _is_pandas(data: object) -> bool:
    return hasattr(data, "iloc") and hasattr(data, "columns")


def _is_lazy(data: object) -> bool:
    return type(data).__name__ == "LazyFrame"


def _as_table(data: Any) -> pa.Table:
    if isinstance(data, pa.Table):
        return data
    if _is_lazy(data):
        data = data.collect()
    if hasattr(data, "to_frame"):
        data = data.to_frame()
    if isinstance(data, Mapping):
        return pa.table({str(name): _array(values, str(name)) for name, values in data.items()})
    if _is_pandas(data):
        names = _once(data.columns)
        return pa.table(
            {name: _array(data.iloc[:, place], name) for place, name in enumerate(names)}
        )
    if hasattr(data, "__arrow_c_stream__"):
        return pa.table(data)
    if isinstance(data, Sequence) and data and isinstance(data[0], Mapping):
        return pa.Table.from_pylist([dict(row) for row in data])
    raise DataError(
        "This is no table.",
        given=type(data).__name__,
        fix="Give a data frame, an Arrow table, a dict of columns or a list of rows.",
    )


def _array(values: object, name: str) -> pa.Array:
    plain = [None if is_missing(value) else value for value in plain_values(values, name)]
    try:
        return pa.array(plain)
    except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError):
        # A column of several types is text, as in a file.
        return pa.array([None if value is None else str(value) for value in plain])


def is_missing(value: object) -> bool:
    """Return whether a cell says nothing: None, a number that is none, or what pandas writes for it."""
    is_no_number = isinstance(value, float) and value != value  # noqa: PLR0124 - NaN
    return value is None or is_no_number or type(value).__name__ in ("NAType", "NaTType")


def _decoded(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return categories as their values, and text as plain strings."""
    if not pa.types.is_dictionary(column.type):
        return _plain(column)
    kind = _plain(pa.array([], column.type.value_type)).type
    parts = [_plain(part.dictionary).take(part.indices) for part in column.chunks]
    return pa.chunked_array(parts, type=kind)


def _plain(column: Any) -> Any:
    """Return text that pyarrow can work with: it has few functions for views, which polars gives."""
    return column.cast(pa.string()) if pa.types.is_string_view(column.type) else column


SEVERAL = (list, tuple, set, frozenset)
MAX_NAMED = 6


def label_values(column: Any, name: str) -> list[Any]:
    """Return the labels of any one-dimensional thing.

    Raises:
        DataError: if it is a single value, or a matrix of numbers.
    """
    shape: tuple[int, ...] = getattr(column, "shape", ())
    if len(shape) == 2 and shape[1] == 1 and hasattr(column, "reshape"):  # noqa: PLR2004
        column = column.reshape(-1)
    values = plain_values(column, name)
    is_matrix = len(shape) > 1 and any(
        isinstance(one, (int, float, list)) for row in values[:1] if is_several(row) for one in row
    )
    if is_matrix:
        raise DataError(
            f"'{name}' has several numbers for every sample.",
            given=tuple(shape),
            fix="Give one label for every sample, such as scores.argmax(axis=1); for a multi-label task a list of names for each.",
        )
    return values


def is_several(value: object) -> bool:
    return isinstance(value, SEVERAL)


def is_many(labels: Iterable[Any]) -> bool:
    """Return whether a sample may have several labels."""
    return any(map(is_several, labels))


def one_form(values: list[Any], *, of_many: bool | None = None) -> list[Any]:
    """Return labels of a multi-label task as lists, also where one is given alone.

    Raises:
        DataError: if predictions are lists where labels are not, or the other way round.
    """
    known = [value for value in values if value is not None]
    if of_many is not None and known and is_many(known) != of_many:
        kinds = ("lists", "single names") if of_many else ("single names", "lists")
        raise DataError(
            f"Labels are {kinds[0]} but predictions are {kinds[1]}.",
            given=known[0],
            fix="Give one of each for every sample, or a list of each for every sample.",
        )
    if not is_many(known):
        return values
    return [value if value is None or is_several(value) else [value] for value in values]


def named(value: Any, names: Sequence[str]) -> Any:
    """Return the name of a label that may be a code; None where there is none.

    Raises:
        DataError: if a code is none of the classes.
    """
    if is_several(value):
        return [named(one, names) for one in value if not is_missing(one)]
    if is_missing(value):
        return None
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, int) and names:
        if str(value) in names:
            return str(value)
        if 0 <= value < len(names):
            return names[value]
        raise DataError(
            f"The label {value} is none of the {len(names)} classes.",
            fix="Correct it, or give all class names.",
        )
    return str(value)


def check_names(
    labels: Iterable[Any], predictions: Iterable[Any] | None, class_names: Sequence[str]
) -> None:
    """Refuse predictions of classes that no label has, where nobody says which classes there are.

    Raises:
        DataError: naming both.
    """
    true, said = _names_in(labels), _names_in(predictions or ())
    unknown = sorted(said - true)
    if class_names or not true or not unknown:
        return
    fix = "Use the same names for both; if the classifier knows classes that no label has, give all class_names."
    if all(name.isdigit() for name in said) and not any(name.isdigit() for name in true):
        fix = "Predictions are codes: give class_names, in the order of the codes."
    elif all(name.isdigit() for name in true) and not any(name.isdigit() for name in said):
        fix = "Labels are codes: give class_names, in the order of the codes."
    raise DataError(
        f"Predictions name classes that no label has: {_few(unknown)}. Labels are {_few(sorted(true))}.",
        fix=fix,
    )


def _names_in(values: Iterable[Any]) -> set[str]:
    return {
        one
        for value in values
        if value is not None
        for one in (value if is_several(value) else (value,))
    }


def _few(names: Sequence[str]) -> str:
    more = len(names) - MAX_NAMED
    return ", ".join(map(repr, names[:MAX_NAMED])) + (f" and {more} more" if more > 0 else "")


OWN = ("key", "path", "label", "labels", "prediction", "predictions", "probabilities", "split")
"""Columns that are written from arguments; a table of metadata may not have them."""


@dataclass(frozen=True, kw_only=True, eq=False)
class GivenSamples(SamplesInMemory):
    """Samples as they were given, in their order.

    Args:
        labels: a label for every sample, or a list of labels.
        embeddings: [n, d].
        metadata: free columns.
        groups: what belongs together.
    """

    labels: list[Any]
    embeddings: FloatArray | None = None
    metadata: pa.Table | None = None
    groups: list[Any] | None = None

    def __len__(self) -> int:
        """Return the number of samples."""
        return len(self.labels)

    @property
    def is_multi_label(self) -> bool:
        return is_many(self.labels)


def gather(
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


def with_roles(table: pa.Table, given: dict[str, object]) -> dict[str, object]:
    """Return the parts that a table holds, by what its columns are called; what was given beside it is stronger.

    Raises:
        DataError: if the meaning of a column is not clear, or a part is given twice.
    """
    roles = _roles(table, given)
    found = _parts(table, roles)
    twice = sorted((set(found) & set(given)) - {"metadata", "class_names"})
    if twice:
        raise DataError(
            f"'{twice[0]}' is given twice: as an argument and as a column of the table.",
            fix="Leave one of them out.",
        )
    return {**found, **{name: part for name, part in given.items() if name != "metadata"}}


def _roles(table: pa.Table, given: dict[str, object]) -> ColumnRoles:
    if "metadata" in given:
        raise DataError(
            "There are a table and metadata.", fix="Put further columns into the table."
        )
    problems = Problems()
    header = TableHeader(
        names=tuple(table.column_names),
        binary=frozenset(
            name for name in table.column_names if pa.types.is_binary(table.schema.field(name).type)
        ),
    )
    roles = resolve_columns(header, {}, problems)
    if roles.labels is None and "labels" not in given:
        problems.add("There is no column of labels, such as 'label'.")
    problems.raise_if_any(
        what="The table cannot be used.",
        where="the table in memory",
        fix="Rename columns, or give what they hold as arguments of find().",
    )
    return roles


def _parts(table: pa.Table, roles: ColumnRoles) -> dict[str, object]:
    parts: dict[str, object] = {}
    if roles.labels is not None:
        parts["labels"] = _labels(table, roles.labels, many=roles.labels_are_many)
    if roles.predictions is not None:
        parts["predictions"] = _labels(table, roles.predictions, many=roles.predictions_are_many)
    if roles.image is not None:
        parts["images"] = table.column(roles.image).to_pylist()
    if roles.split is not None:
        parts["splits"] = table.column(roles.split).to_pylist()
    if roles.probability_columns:
        parts["class_names"] = [name for name, _ in roles.probability_columns]
        parts["probabilities"] = np.stack(
            [table.column(name).to_numpy() for _, name in roles.probability_columns], axis=1
        )
    elif roles.probabilities is not None:
        parts["probabilities"] = table.column(roles.probabilities).to_pylist()
    # The row of a table is its place; a name of its own is a column like others.
    free = [name for name in roles.metadata if name != "group"]
    if "group" in roles.metadata:
        parts["groups"] = table.column("group").to_pylist()
    if free:
        parts["metadata"] = table.select(free)
    return parts


def _labels(table: pa.Table, name: str, *, many: bool) -> list[Any]:
    values = table.column(name).to_pylist()
    return [list(label_cell(value, many=True)) for value in values] if many else values


def check_enough(samples: GivenSamples) -> None:
    """Refuse what says nothing of samples but labels and predictions.

    Raises:
        DataError: saying what is missing.
    """
    if not len(samples):
        raise DataError("There are no samples.", fix="Give labels of at least two classes.")
    if all(value is None for value in samples.labels):
        raise DataError("Not one sample has a label.", fix="Give labels: names or codes.")
    if samples.predictions is None or all(value is None for value in samples.predictions):
        raise DataError(
            "Nothing is known of what the classifier says.",
            fix="Give predictions, or probabilities, or a model.",
        )
    columns: Sequence[object] = () if samples.metadata is None else samples.metadata.column_names
    if samples.images is None and samples.embeddings is None and not columns:
        raise DataError(
            "Labels and predictions alone do not say what the failures have in common.",
            fix="Give images, embeddings or metadata of the samples, too.",
        )
    if samples.images is not None:
        _check_files(samples.images)


def _check_files(images: Sequence[Any] | AnyArray) -> None:
    """Refuse images of which not one is there."""
    for image in images:
        if not isinstance(image, (str, os.PathLike)):
            if image is not None:
                return
        elif not is_local(os.fspath(image)) or local_path(os.fspath(image)).is_file():
            return
    raise DataError(
        f"Not one of {len(images)} images is there.",
        given=next((os.fspath(image) for image in images if image is not None), None),
        fix=f"Correct the paths; relative ones start at {Path.cwd()}. Leave images out if there are none.",
    )


TABLE, EMBEDDINGS, IMAGES = "samples.parquet", "embeddings.npz", "images"
IMAGENET_MEAN = np.array([0.485, 0.456, 0.406], dtype=np.float32)
IMAGENET_STD = np.array([0.229, 0.224, 0.225], dtype=np.float32)
_COLOUR = 3
_SLACK = 0.02


def make_project(
    folder: Path,
    samples: GivenSamples,
    train: GivenSamples | None,
    settings: Settings,
    *,
    progress: StageProgress = no_stage_progress,
) -> Project:
    """Write what was given into a folder and open it as a project.

    Args:
        folder: made if need be.
        samples: those that failures are looked for in.
        train: those that the classifier learnt from.
        settings: to start from; data and embedder are filled in.
        progress: told how far every stage is.

    Raises:
        ConfigError: if the folder holds a project already.
        DataError: if an image cannot be taken.
    """
    chosen = _with_data(settings, samples)
    Project.create(folder, settings=chosen)
    parts = [_table(samples, folder, first=0, split=Split.VALIDATION)]
    if train is not None:
        parts.append(_table(train, folder, first=len(samples), split=Split.TRAIN))
    pq.write_table(_joined(parts), folder / TABLE)
    if samples.embeddings is not None:
        _write_embeddings(folder / EMBEDDINGS, samples, train)
    return Project.open(folder, progress=progress)


def _joined(parts: Sequence[pa.Table]) -> pa.Table:
    try:
        return pa.concat_tables(parts, promote_options="permissive")
    except pa.ArrowException as error:
        raise DataError(
            f"A column of 'train' is of another kind than that of the samples: {str(error).splitlines()[0]}",
            fix="Give columns of one kind in both.",
        ) from error


def key_of(place: int) -> str:
    """Return the name of the sample at a place of what was given."""
    return f"row {place}"


def place_of(key: str) -> int:
    """Return the place of a sample among all that were given; training samples follow the others."""
    return int(key.removeprefix("row "))


def _with_data(settings: Settings, samples: GivenSamples) -> Settings:
    many = samples.is_multi_label
    roles = {"key": "key", **({"labels": "labels"} if many else {"label": "label"})}
    if samples.predictions is not None:
        roles |= {"predictions": "predictions"} if many else {"prediction": "prediction"}
    if samples.images is not None:
        roles["path"] = "path"
    changes: dict[str, Any] = {
        "source": TABLE,
        "kind": "predictions" if samples.images is None else "manifest",
        "columns": roles,
        "class_names": samples.class_names,
        **({"group": "group"} if samples.groups is not None else {}),
    }
    updated: dict[str, Any] = {"data": settings.data.model_copy(update=changes)}
    if samples.embeddings is not None:
        updated["embedder"] = settings.embedder.model_copy(
            update={"name": "given-embeddings", "options": {"path": EMBEDDINGS}}
        )
    return settings.model_copy(update=updated)


def _table(samples: GivenSamples, folder: Path, *, first: int, split: Split) -> pa.Table:
    suffix = "s" if samples.is_multi_label else ""
    columns: dict[str, Any] = {
        "key": [key_of(first + place) for place in range(len(samples))],
        f"label{suffix}": samples.labels,
    }
    if samples.images is not None:
        columns["path"] = [
            _written(image, folder / IMAGES / f"{first + place:07d}.png", place)
            for place, image in enumerate(samples.images)
        ]
    if samples.predictions is not None:
        columns[f"prediction{suffix}"] = samples.predictions
    if samples.probabilities is not None:
        columns["probabilities"] = np.asarray(samples.probabilities).tolist()
    columns["split"] = [named or split.value for named in (samples.splits or [None] * len(samples))]
    if samples.groups is not None:
        columns["group"] = [None if one is None else str(one) for one in samples.groups]
    free = {} if samples.metadata is None else {
        name: samples.metadata.column(name) for name in samples.metadata.column_names
    }  # fmt: skip
    return pa.table(columns | free)


def _write_embeddings(path: Path, samples: GivenSamples, train: GivenSamples | None) -> None:
    parts = [samples.embeddings]
    n_rows = len(samples)
    if train is not None:
        if train.embeddings is None:
            raise DataError(
                "Samples have embeddings, but those of 'train' have none.",
                fix="Give embeddings of both, made alike.",
            )
        parts.append(train.embeddings)
        n_rows += len(train)
    widths = {part.shape[1] for part in parts if part is not None}
    if len(widths) > 1:
        raise DataError(
            "Embeddings of samples and of 'train' differ in length.",
            given=sorted(widths),
            fix="Give embeddings of one encoder.",
        )
    np.savez(
        path,
        embeddings=np.concatenate([part for part in parts if part is not None]),
        ids=np.array([key_of(place) for place in range(n_rows)]),
    )


def _written(image: Any, target: Path, place: int) -> str | None:
    try:
        return _location(image, target)
    except DataError as error:
        tell_where(error, f"image {place}")
        raise


def _location(image: Any, target: Path) -> str | None:
    """Return where an image is, None where there is none; pixels are written to the target first."""
    if image is None:
        return None
    if isinstance(image, (str, os.PathLike)):
        text = os.fspath(image)
        return str(local_path(text).absolute()) if is_local(text) else text
    target.parent.mkdir(exist_ok=True)
    target.write_bytes(_encoded(image))
    return target.relative_to(target.parents[1]).as_posix()


def _encoded(image: Any) -> bytes:
    if isinstance(image, dict) and image.get("bytes") is not None:
        image = image["bytes"]
    if isinstance(image, (bytes, bytearray, memoryview)):
        return bytes(image)
    return encode_png(image if isinstance(image, Image.Image) else pixels_of(image))


def pixels_of(image: Any) -> AnyArray:
    """Return an image of numbers as uint8 [height, width, 3] or [height, width].

    Channels may come first or last. Numbers from 0 to 1 are scaled; numbers that were standardised as ImageNet's are put back, and
    all other numbers are stretched from the smallest to the largest.

    Raises:
        DataError: if it is no image.

    >>> pixels_of(np.ones((3, 2, 2), dtype=np.float32))[0, 0].tolist()
    [255, 255, 255]
    """
    raw = image.detach().cpu().numpy() if hasattr(image, "detach") else image
    array = np.asarray(raw)
    if array.ndim == _COLOUR and array.shape[-1] not in (1, 3, 4) and array.shape[0] in (1, 3, 4):
        array = np.moveaxis(array, 0, -1)
    if array.ndim == _COLOUR and array.shape[-1] == 1:
        array = array[..., 0]
    is_image = array.ndim == 2 or (array.ndim == _COLOUR and array.shape[-1] in (3, 4))  # noqa: PLR2004
    if not is_image or 0 in array.shape or not np.issubdtype(array.dtype, np.number):
        raise DataError(
            "This is no image.",
            given=f"{array.dtype} {array.shape}",
            fix="Give paths, Pillow images, or arrays [height, width, 3].",
        )
    if array.dtype == np.uint8:
        return array
    numbers = np.nan_to_num(array.astype(np.float32))
    return np.round(255 * _unit(numbers)).astype(np.uint8)


def _unit(numbers: AnyArray) -> AnyArray:
    """Return numbers between 0 and 1."""
    low, high = float(numbers.min()), float(numbers.max())
    if low >= 0 and high <= 1:
        return numbers
    if low >= 0 and high <= 255 and float(np.abs(numbers - np.round(numbers)).max()) == 0:  # noqa: PLR2004
        scaled: AnyArray = numbers / 255
        return scaled
    if numbers.ndim == _COLOUR and numbers.shape[-1] == _COLOUR:
        back = numbers * IMAGENET_STD + IMAGENET_MEAN
        if back.min() >= -_SLACK and back.max() <= 1 + _SLACK:
            clipped: AnyArray = np.clip(back, 0, 1)
            return clipped
    stretched: AnyArray = (numbers - low) / max(high - low, 1e-9)
    return stretched


@dataclass(frozen=True, kw_only=True, eq=False)
class EvaluatedSamples:
    """The samples of a run that have labels and predictions.

    Args:
        samples: only these.
        criterion: what counts as a failure.
    """

    samples: SampleSet
    criterion: FailureCriterion

    @cached_property
    def problems(self) -> tuple[ClassProblem, ...]:
        return tuple(class_problems(self.samples.dataset, self.samples.rows, self.criterion))

    def places(self, rows: IntArray) -> IntArray:
        """Return the places of rows of the data set in what was given."""
        keys = self.samples.dataset.table.column("key").take(rows).to_pylist()
        return np.array([place_of(key) for key in keys], dtype=np.int64)

    def thumbnails(self, sample_ids: Iterable[str], side: int) -> dict[str, bytes]:
        """Return JPEG files of samples by id; those without an image that can be read are left out."""
        wanted = set(sample_ids)
        dataset, rows = self.samples.dataset, self.samples.rows
        places = zip(dataset.sample_ids(rows), dataset.locations(rows), strict=True)
        made = {name: jpeg_at(location, side) for name, location in places if name in wanted}
        return {name: data for name, data in made.items() if data is not None}
