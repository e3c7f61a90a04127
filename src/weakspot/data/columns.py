"""Which column of a table means what, and one type for each free column.

Free columns of samples with images come as one JSON object a sample; of a table without images as values, each column of one
type.
"""

import difflib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import pyarrow as pa

from weakspot.data.source import Problems
from weakspot.data.tables import TableHeader

PROBABILITY_PREFIX = "prob_"
_NAMES: dict[str, tuple[tuple[str, ...], ...]] = {
    "path": (
        ("path", "url", "image", "file_name"),
        (
            "filename",
            "file",
            "filepath",
            "file_path",
            "image_path",
            "img_path",
            "image_url",
            "uri",
            "img",
        ),
    ),
    "bytes": (("bytes", "image_bytes", "image_base64"),),
    "label": (("label",), ("class", "class_name", "target", "category")),
    "labels": (("labels",),),
    "split": (("split",),),
    "prediction": (("prediction",), ("predicted", "pred", "predicted_label")),
    "predictions": (("predictions",),),
    "probabilities": (("probabilities",), ("probs",)),
    "key": (("sample_id", "key"),),
    "group": (("group",),),
}
_ROLE_SYNONYMS = {"url": "path", "image": "path", "file_name": "path", "sample_id": "key"}
ROLES = tuple(_NAMES)
_EXCLUSIVE = (
    ("path", "bytes"),
    ("label", "labels"),
    ("prediction", "predictions"),
    ("split",),
    ("probabilities",),
    ("key",),
    ("group",),
)


@dataclass(frozen=True, kw_only=True)
class ColumnRoles:
    """The columns of a table by what they mean; None where there is none.

    Args:
        image: where the image is, or the image itself.
        image_is_bytes: whether text in that column is an image in base64, not a path.
        labels: true labels.
        labels_are_many: whether text there is several labels with `;` or `|` between them.
        predictions: predicted labels.
        predictions_are_many: the same for predictions.
        split: names of splits.
        probabilities: list or mapping of probabilities.
        probability_columns: class and column of every `prob_<class>` column.
        key: unique name of a row.
        metadata: all other columns.
    """

    image: str | None = None
    image_is_bytes: bool = False
    labels: str | None = None
    labels_are_many: bool = False
    predictions: str | None = None
    predictions_are_many: bool = False
    split: str | None = None
    probabilities: str | None = None
    probability_columns: tuple[tuple[str, str], ...] = ()
    key: str | None = None
    metadata: tuple[str, ...] = ()

    @property
    def has_predictions(self) -> bool:
        return (
            self.predictions is not None
            or self.probabilities is not None
            or bool(self.probability_columns)
        )


def resolve_columns(
    header: TableHeader, given: Mapping[str, str], problems: Problems, *, with_images: bool = True
) -> ColumnRoles:
    """Find out what every column means; unclear and missing columns go to `problems`.

    Args:
        header: the columns.
        given: role to column name, as the user says; stronger than any guess.
        problems: takes what is wrong.
        with_images: whether a column may be the image.
    """
    chosen = _given_roles(header, given, problems)
    for group in _EXCLUSIVE:
        if not any(role in chosen for role in group) and (with_images or "path" not in group):
            chosen.update(_guess(header, group, problems))
    # What belongs together is a free column too: it may be an attribute, or the groups of a repair.
    taken = {column for role, column in chosen.items() if role != "group"}
    probability_columns = _probability_columns(header, taken)
    taken.update(column for _, column in probability_columns)
    if probability_columns and "probabilities" in chosen:
        problems.add(
            f"Probabilities are given twice: in {chosen['probabilities']!r} and in {probability_columns[0][1]!r}."
        )
    return ColumnRoles(
        image=chosen.get("path", chosen.get("bytes")),
        image_is_bytes="bytes" in chosen,
        labels=chosen.get("label", chosen.get("labels")),
        labels_are_many="labels" in chosen,
        predictions=chosen.get("prediction", chosen.get("predictions")),
        predictions_are_many="predictions" in chosen,
        split=chosen.get("split"),
        probabilities=chosen.get("probabilities"),
        probability_columns=probability_columns,
        key=chosen.get("key"),
        metadata=tuple(
            name for name in header.names if name not in taken | header.binary | header.images
        ),
    )


def _probability_columns(header: TableHeader, taken: set[str]) -> tuple[tuple[str, str], ...]:
    return tuple(
        (name[len(PROBABILITY_PREFIX) :], name)
        for name in header.names
        if name.lower().startswith(PROBABILITY_PREFIX)
        and name not in taken
        and len(name) > len(PROBABILITY_PREFIX)
    )


def _given_roles(
    header: TableHeader, given: Mapping[str, str], problems: Problems
) -> dict[str, str]:
    chosen: dict[str, str] = {}
    for wanted, column in given.items():
        role = _ROLE_SYNONYMS.get(wanted, wanted)
        if role not in _NAMES:
            problems.add(
                f"There is no column role {wanted!r}{did_you_mean(wanted, ROLES)} (roles: {', '.join(ROLES)})."
            )
        elif column not in header.names:
            problems.add(
                f"The column {column!r} given for {wanted!r} is missing{did_you_mean(column, header.names)}."
            )
        else:
            chosen[role] = column
    for group in _EXCLUSIVE:
        both = [role for role in group if role in chosen]
        if len(both) > 1:
            problems.add(f"Columns are given for both {both[0]!r} and {both[1]!r}; give one.")
    return chosen


def _guess(header: TableHeader, group: tuple[str, ...], problems: Problems) -> dict[str, str]:
    if "path" in group and len(header.images) == 1:
        return {"path": next(iter(header.images))}
    for level in range(max(len(_NAMES[role]) for role in group)):
        found = [
            (role, name)
            for role in group
            for name in header.names
            if level < len(_NAMES[role]) and name.strip().lower() in _NAMES[role][level]
        ]
        if len(found) > 1:
            listed = " and ".join(repr(name) for _, name in found)
            problems.add(
                f"The columns {listed} could both be the {group[0]}; say which with columns = {{{group[0]} = ...}}."
            )
        if found:
            return {found[0][0]: found[0][1]}
    return {}


def did_you_mean(given: str, known: tuple[str, ...]) -> str:
    """Return a hint at the nearest known name, or nothing.

    >>> did_you_mean("lable", ("label", "split"))
    " (did you mean 'label'?)"
    """
    near = difflib.get_close_matches(given.lower(), known, n=1)
    return f" (did you mean {near[0]!r}?)" if near else ""


Value = str | int | float | bool | None
METADATA, METADATA_VALUES = "metadata", "metadata_values"
_SMALLEST, _LARGEST = -(2**63), 2**63 - 1
_TYPES = {"bool": pa.bool_(), "int": pa.int64(), "float": pa.float64(), "str": pa.string()}
_KINDS = {kind: name for name, kind in _TYPES.items()}


@dataclass
class MetadataColumns:
    """Names and kinds of values of the free columns, in order of first appearance."""

    _kinds: dict[str, set[str]] = field(default_factory=dict)

    def observe(self, part: pa.Table) -> None:
        """Look at the values of some examined samples."""
        for name, values in values_of(part).items():
            kinds = self._kinds.setdefault(name, set())
            if values.null_count < len(values):
                kinds.add(_KINDS[values.type])
        for row in _parse(part.column(METADATA)):
            for name, value in row.items():
                kinds = self._kinds.setdefault(name, set())
                if value is not None:
                    kinds.add(_kind(value))

    @property
    def types(self) -> dict[str, pa.DataType]:
        """Return the type of every column: the narrowest that holds all its values; text if they have nothing in common."""
        return {name: _type(kinds) for name, kinds in self._kinds.items()}

    def columns(self, part: pa.Table) -> dict[str, pa.Array]:
        """Return the columns of some examined samples, each as the type that it has over all."""
        types = self.types
        held = values_of(part)
        if held:
            return {
                name: _cast(held[name], kind) if name in held else pa.nulls(part.num_rows, kind)
                for name, kind in types.items()
            }
        values: dict[str, list[Value]] = {name: [] for name in types}
        for row in _parse(part.column(METADATA)) if types else ():
            for name, kind in types.items():
                values[name].append(_as_type(row.get(name), kind))
        return {name: pa.array(values[name], kind) for name, kind in types.items()}


def values_of(part: pa.Table) -> dict[str, pa.Array]:
    """Return the free columns that are held as values; none if they are JSON objects."""
    if METADATA_VALUES not in part.column_names:
        return {}
    whole = part.column(METADATA_VALUES).combine_chunks()
    return dict(zip((field.name for field in whole.type), whole.flatten(), strict=True))


def as_values(values: Sequence[Value], kind: str | None) -> pa.Array:
    """Return values of one kind, as text if a whole number does not fit into 64 bits."""
    if kind == "int" and any(
        value is not None and not _SMALLEST <= int(value) <= _LARGEST for value in values
    ):
        return _cast(values, pa.string())
    return pa.array(values, _TYPES.get(kind or "str"))


def _cast(values: pa.Array | Sequence[Value], kind: pa.DataType) -> pa.Array:
    if isinstance(values, pa.Array) and values.type == kind:
        return values
    listed = values.to_pylist() if isinstance(values, pa.Array) else values
    return pa.array([_as_type(value, kind) for value in listed], kind)


def _parse(rows: pa.ChunkedArray) -> list[dict[str, Value]]:
    if rows.null_count == len(rows):
        return [{}] * len(rows)
    # One text for all rows: parsing row by row costs four times as much.
    parsed: list[dict[str, Value]] = json.loads(
        "[" + ",".join(text or "{}" for text in rows.to_pylist()) + "]"
    )
    return parsed


def _kind(value: object) -> str:
    if (
        isinstance(value, int)
        and not isinstance(value, bool)
        and not _SMALLEST <= value <= _LARGEST
    ):
        return "str"
    return type(value).__name__ if isinstance(value, (bool, int, float)) else "str"


def _type(kinds: set[str]) -> pa.DataType:
    if kinds == {"bool"}:
        return pa.bool_()
    if kinds == {"int"}:
        return pa.int64()
    return pa.float64() if kinds and kinds <= {"int", "float"} else pa.string()


def _as_type(value: Value, kind: pa.DataType) -> Value:
    if value is None or kind in (pa.bool_(), pa.int64()):
        return value
    if kind == pa.float64():
        return float(value)
    return value if isinstance(value, str) else json.dumps(value)
