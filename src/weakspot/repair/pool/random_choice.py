"""Baseline: adding pool samples at random."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import get_args

from weakspot.core.seeding import generator
from weakspot.core.slices import FailureSlice
from weakspot.core.training_sets import RepairMaterial, TrainingSelection
from weakspot.repair.pool.added import refuse_unknown, with_added
from weakspot.repair.pool.candidates import Within, open_pool


@dataclass(frozen=True, kw_only=True)
class RandomRepairer:
    """Adds samples at random; with the same seed a larger budget keeps what a smaller one chose.

    Args:
        within: the whole `pool`, or only what is inside the `slices`.
    """

    within: Within = "pool"

    is_baseline = True

    def __post_init__(self) -> None:
        """Refuse settings that cannot mean anything."""
        refuse_unknown("within", self.within, get_args(Within))

    def select(self, slices: Sequence[FailureSlice], material: RepairMaterial) -> TrainingSelection:
        """Return training rows and random pool rows."""
        pool = open_pool(material, "pool-random")
        candidates = pool.candidates(slices, self.within)
        chosen = generator(material.seed, "pool-random").permutation(candidates)[: pool.budget]
        return with_added(material, chosen, f"at random {'inside the slices' if self.within == 'slices' else 'in the whole pool'}")
