"""Combinations that stand out also when a group of images counts once."""

from dataclasses import replace

import numpy as np

from weakspot.core.arrays import AnyArray, IntArray
from weakspot.core.group_tests import GroupTest
from weakspot.discover.attributes.counted import CountedClass, Values
from weakspot.discover.attributes.standing_out import StandingOut

MOST_TESTED = 200
REFINING_DRAWS = 4_999


def keep_standing_out_in_groups(
    counted: CountedClass,
    standing_out: StandingOut,
    groups: IntArray,
    *,
    max_p: float,
    refine_p: float,
) -> StandingOut:
    """Return those that stand out at the level of groups [n] too, among the best of them by images.

    Tests of images only choose what is put to the tests of groups, which have the last word on both p-values.
    """
    best = np.argsort(standing_out.p_values, kind="stable")[:MOST_TESTED]
    chosen = StandingOut(
        places=standing_out.places[best],
        p_values=standing_out.p_values[best],
        added_ps=standing_out.added_ps[best],
    )
    insides = [counted.members(int(place)) for place in chosen.places]
    chosen = replace(chosen, p_values=np.array(GroupTest(counted.failed, groups).p_values(insides)))
    added, is_kept = chosen.added_ps.copy(), chosen.p_values <= max_p
    for number in np.flatnonzero(is_kept).tolist():
        values = counted.values(int(chosen.places[number]))
        added[number] = refining_p(counted, values, groups, otherwise=chosen.p_values[number])
        is_kept[number] = len(values) == 1 or (
            added[number] * _n_alternatives(counted, values) <= refine_p
        )
    return StandingOut(
        places=chosen.places[is_kept], p_values=chosen.p_values[is_kept], added_ps=added[is_kept]
    )


def refining_p(
    counted: CountedClass, values: Values, groups: IntArray, *, otherwise: float = 1.0
) -> float:
    """Return the largest p-value against the rest of any shorter combination; `otherwise` for a single value."""
    if len(values) == 1:
        return otherwise
    inside = counted.have_all(values)
    found = []
    for dropped in range(len(values)):
        near = counted.have_all(values[:dropped] + values[dropped + 1 :])
        test = GroupTest(counted.failed[near], groups[near], n_draws=REFINING_DRAWS)
        found.append(test.p_value(inside[near]))
    return max(found)


def _n_alternatives(counted: CountedClass, values: Values) -> int:
    """Return how many values could have been added to a shorter combination, at most."""
    attributes: AnyArray = counted.found.attributes[counted.found.orders == 1, 0]
    used = [int(np.sum(attributes == attribute)) for attribute, _ in values]
    return len(attributes) - sum(used) + max(used)
