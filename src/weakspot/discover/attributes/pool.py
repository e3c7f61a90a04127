"""What a search picks from: combinations that stand out, one for each set of members."""

from dataclasses import dataclass

import numpy as np

from weakspot.core.accounting import Memberships
from weakspot.core.arrays import AnyArray, BoolArray, DoubleArray, IntArray
from weakspot.core.combinations import penalties_of
from weakspot.discover.attributes.alike import collapse_alike
from weakspot.discover.attributes.counted import CountedClass
from weakspot.discover.attributes.standing_out import StandingOut

MOST_POOLED = 1_000
MOST_WEAK_POOLED = 200
MOST_MEMBERS = 4_000_000
STRONG = 0.05
"""A combination whose p-value stays below this when multiplied by the number of combinations stands out by itself."""
COST_OF_ABSENCE = 1.0


@dataclass(frozen=True, kw_only=True, eq=False)
class Pool:
    """Combinations that stand out, one for each set of members; the shorter, then the larger one first.

    Args:
        places: [m] among all combinations.
        members: rows of the members of each.
        added_ps: [m] largest p-value against a shorter combination.
        penalties: [m] what is taken off the evidence for their order and for values that say that something is not there.
        is_strong: [m] whether it stands out allowing for all combinations.
    """

    places: IntArray
    members: tuple[IntArray, ...]
    added_ps: DoubleArray
    penalties: DoubleArray
    is_strong: BoolArray

    @classmethod
    def of(
        cls, counted: CountedClass, standing_out: StandingOut, is_absent: AnyArray | None
    ) -> "Pool":
        found, places = counted.found, standing_out.places
        orders = found.orders[places]
        n_alike = np.bincount(found.orders, minlength=1)[orders]
        n_orders = max(1, int(found.orders.max(initial=1)))
        is_strong = standing_out.p_values * n_alike * n_orders <= STRONG
        n_absent = _absent_values(counted, places, is_absent)
        scores = counted.scores[places] - COST_OF_ABSENCE * n_absent
        rest = np.where(is_strong, standing_out.added_ps, -scores)
        ranked = np.lexsort((-found.n_inside[places], orders, -np.round(scores, 9), rest))
        kept = np.concatenate(
            [
                ranked[is_strong[ranked]][:MOST_POOLED],
                ranked[~is_strong[ranked]][:MOST_WEAK_POOLED],
            ]
        )
        # Equal evidence goes to the shorter combination, then to the larger one.
        ties = (-found.n_inside[places[kept]], orders[kept], -np.round(scores[kept], 9))
        kept = kept[np.lexsort(ties)]
        members = [np.flatnonzero(counted.members(int(place))) for place in places[kept]]
        simplicity = list(zip(orders[kept].tolist(), n_absent[kept].tolist(), strict=True))
        shown = collapse_alike(members, scores[kept], simplicity, len(counted.failed))
        leaders = kept[np.array(shown, dtype=np.int64)]
        return cls(
            places=places[leaders],
            members=tuple(members[one] for one in shown),
            added_ps=standing_out.added_ps[leaders],
            penalties=penalties_of(found)[places[leaders]] + COST_OF_ABSENCE * n_absent[leaders],
            is_strong=is_strong[leaders],
        )

    def memberships(self, failed: BoolArray) -> Memberships:
        n_members = sum(len(rows) for rows in self.members)
        return Memberships(self.members, failed, step=1 + n_members // MOST_MEMBERS)

    def inside(self, place: int, n_samples: int) -> BoolArray:
        inside = np.zeros(n_samples, dtype=np.bool_)
        inside[self.members[place]] = True
        return inside

    def strong_first(self) -> list[int]:
        """Return the places that stand out by themselves, those first that differ most from their shorter combinations."""
        order = np.argsort(self.added_ps, kind="stable")
        return [int(place) for place in order if self.is_strong[place]]


def _absent_values(counted: CountedClass, places: IntArray, is_absent: AnyArray | None) -> IntArray:
    if is_absent is None:
        return np.zeros(len(places), dtype=np.int64)
    attributes, codes = counted.found.attributes[places], counted.found.codes[places]
    found = (attributes >= 0) & is_absent[np.maximum(attributes, 0), codes]
    return np.asarray(found.sum(axis=1), dtype=np.int64)
