"""A label hierarchy: which label lies under which parent."""

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from weakspot.core.arrays import IntArray
from weakspot.core.errors import DataError


@dataclass(frozen=True, kw_only=True)
class LabelHierarchy:
    """Parents of labels, as a mapping from child to parent; a label without a parent is its own.

    >>> tree = LabelHierarchy(parents={"robin": "bird", "crow": "bird"})
    >>> tree.parent("robin"), tree.parent("trout")
    ('bird', 'trout')
    """

    parents: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for label in self.parents:
            seen = {label}
            step = self.parents.get(label)
            while step is not None:
                if step in seen:
                    raise DataError(
                        "The label hierarchy runs in a circle.",
                        where=f"label {label!r}",
                        given=dict(self.parents),
                    )
                seen.add(step)
                step = self.parents.get(step)

    def parent(self, label: str) -> str:
        return self.parents.get(label, label)

    def parent_codes(self, class_names: tuple[str, ...]) -> IntArray:
        """Return for every class the number of its parent group [c]."""
        names = [self.parent(name) for name in class_names]
        numbers = {name: number for number, name in enumerate(dict.fromkeys(names))}
        return np.array([numbers[name] for name in names], dtype=np.int64)
