"""DivExplorer and sliceline on a planted table: what they list first. Both are given the rows of the planted class only.

Neither knows of classes, halves or proof; both get every row to look at. Installed by `requirements-bench.txt`.
"""

from typing import TYPE_CHECKING

import numpy as np

from tables.ours import ALIKE, overlap
from tables.worlds import PlantedTable, name_of

if TYPE_CHECKING:
    import pandas as pd

FIRST = 10
MIN_SUPPORT = 50

Listed = dict[str, list[tuple[tuple[int, bool], ...]]]
"""By way of ordering, what is listed first: (column, whether it is yes) of every value."""


def divexplorer(table: PlantedTable) -> Listed:
    """Return its patterns, ordered in three ways.

    It has no limit to the length of a pattern, so with `no` as a value of forty columns it does not end; it gets the `yes` only.
    """
    import pandas as pd
    from divexplorer import DivergenceExplorer, DivergencePatternProcessor

    own = table.labels == 0
    names = [name_of(place) for place in range(table.columns.shape[1])]
    frame = pd.DataFrame(np.where(table.columns[own], "yes", None), columns=names)
    frame["failed"] = table.failed[own].astype(int)
    found = DivergenceExplorer(frame).get_pattern_divergence(
        min_support=MIN_SUPPORT / int(own.sum()), boolean_outcomes=["failed"]
    )
    pruned = DivergencePatternProcessor(found, "failed").redundancy_pruning(th_redundancy=0.05)
    worse, pruned = found[found["failed_div"] > 0], pruned[pruned["failed_div"] > 0]
    return {
        "divexplorer, by divergence": _patterns(worse.sort_values("failed_div", ascending=False)),
        "divexplorer, by t": _patterns(worse.sort_values("failed_t", ascending=False)),
        "divexplorer, pruned, by t": _patterns(pruned.sort_values("failed_t", ascending=False)),
    }


def _patterns(found: "pd.DataFrame") -> list[tuple[tuple[int, bool], ...]]:
    return [
        tuple((int(item.split("=")[0].removeprefix("tag")), True) for item in itemset)
        for itemset in found["itemset"][:FIRST]
    ]


def sliceline(table: PlantedTable) -> Listed:
    """Return its ten slices for the default weight of severity, and for more."""
    from sliceline.slicefinder import Slicefinder

    own = table.labels == 0
    values, errors = table.columns[own].astype(int), table.failed[own].astype(float)
    listed: Listed = {}
    for alpha in (0.6, 0.95):
        finder = Slicefinder(alpha=alpha, k=FIRST, max_l=3, min_sup=MIN_SUPPORT, verbose=False)
        finder.fit(values, errors)
        listed[f"sliceline, alpha {alpha}"] = [
            tuple((column, bool(value)) for column, value in enumerate(row) if value is not None)
            for row in finder.top_slices_
        ]
    return listed


PEERS = {"divexplorer": divexplorer, "sliceline": sliceline}


def recalled(table: PlantedTable, listed: Listed) -> dict[str, list[str]]:
    """Return for every way of ordering the planted slices among the first ten."""
    own = table.labels == 0
    return {
        way: sorted(
            name
            for name in table.planted
            if any(
                overlap(own & _members(table, pattern), table.members(name)) >= ALIKE
                for pattern in patterns[:FIRST]
            )
        )
        for way, patterns in listed.items()
    }


def _members(table: PlantedTable, pattern: tuple[tuple[int, bool], ...]) -> np.ndarray:
    inside = np.ones(len(table.labels), dtype=bool)
    for column, is_yes in pattern:
        inside &= table.columns[:, column] == is_yes
    return inside
