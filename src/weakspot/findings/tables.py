"""A table in memory whose columns are called as in a manifest."""

from typing import Any

import numpy as np
import pyarrow as pa

from weakspot.core.errors import DataError
from weakspot.ingest.cells import label_cell
from weakspot.ingest.columns import ColumnRoles, resolve_columns
from weakspot.ingest.problems import Problems
from weakspot.ingest.tables import TableHeader


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
