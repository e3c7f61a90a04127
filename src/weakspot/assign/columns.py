"""What assignment gives: a column with its attribute, or the reason why there is none."""

from collections.abc import Iterable
from dataclasses import dataclass, replace

import pyarrow as pa

from weakspot.core.attributes import Attribute, AttributeSource

SUFFIXES: dict[AttributeSource, str] = {
    "built-in": "assigned",
    "proposed": "assigned",
    "property": "measured",
    "metadata": "bins",
    "given": "given",
}


@dataclass(frozen=True, kw_only=True, eq=False)
class AssignedColumn:
    """An attribute and its column.

    Args:
        attribute: what it is.
        column: one value a sample, or None when the data set has the column already.
    """

    attribute: Attribute
    column: pa.Array | None


@dataclass(frozen=True, kw_only=True)
class LeftOut:
    """An attribute that there is no column for, and why."""

    name: str
    why: str

    @property
    def sentence(self) -> str:
        """Return it as people read it."""
        return f"The attribute {self.name!r} is left out: {self.why}."


def with_free_names(
    found: Iterable[AssignedColumn], taken: Iterable[str]
) -> tuple[AssignedColumn, ...]:
    """Return the columns under names that the data set does not use yet; nothing of the user's is ever replaced.

    >>> from weakspot.core.attributes import Attribute
    >>> seen = Attribute(name="colour", column="colour", source="built-in", values=())
    >>> with_free_names([AssignedColumn(attribute=seen, column=pa.array([]))], ["colour"])[0].attribute.column
    'colour (assigned)'
    """
    used = set(taken)
    free: list[AssignedColumn] = []
    for each in found:
        free.append(
            each if each.column is None else replace(each, attribute=_rename(each.attribute, used))
        )
        used.add(free[-1].attribute.column)
    return tuple(free)


def _rename(attribute: Attribute, used: set[str]) -> Attribute:
    name = attribute.column
    wanted, number = name, 1
    while wanted in used:
        suffix = SUFFIXES[attribute.source]
        wanted = f"{name} ({suffix})" if number == 1 else f"{name} ({suffix} {number})"
        number += 1
    return attribute.model_copy(update={"column": wanted})
