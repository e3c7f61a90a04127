"""Baseline: adding pool samples at random."""

from collections.abc import Sequence
from dataclasses import dataclass

from weakspot.core.seeding import generator
from weakspot.core.slices import FailureSlice
from weakspot.core.training_sets import RepairMaterial, TrainingSelection
from weakspot.repair.pool.added import with_added
from weakspot.repair.pool.candidates import open_pool
from weakspot.repair.pool.scope import PoolScope


@dataclass(frozen=True, kw_only=True)
class RandomRepairer(PoolScope):
    """Adds samples at random; with the same seed a larger budget keeps what a smaller one chose."""

    is_baseline = True

    def select(self, slices: Sequence[FailureSlice], material: RepairMaterial) -> TrainingSelection:
        """Return training rows and random pool rows."""
        pool = open_pool(material, "pool-random")
        candidates = pool.candidates(slices, self.within)
        chosen = generator(material.seed, "pool-random").permutation(candidates)[: pool.budget]
        return with_added(material, chosen, f"at random {self.place}")
