"""Free columns: one type for each, found from all its values.

Of samples with images they come as one JSON object a sample; of a table without images as values, each column of one type.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field

import pyarrow as pa

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
