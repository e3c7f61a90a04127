"""Baseline: adding pool samples at random."""

from collections.abc import Sequence
from dataclasses import dataclass

from weakspot.core.seeding import generator
from weakspot.core.slices import FailureSlice
from weakspot.core.training_sets import RepairMaterial, TrainingSelection
from weakspot.repair.methods.pool.added import PoolScope, with_added
from weakspot.repair.methods.pool.candidates import open_pool


@dataclass(frozen=True, kw_only=True)
class RandomRepairer(PoolScope):
    """Adds samples at random; with the same seed a larger budget keeps what a smaller one chose.

    >>> from weakspot.testing.examples import repair_example
    >>> slices, material = repair_example()
    >>> RandomRepairer().select(slices, material).note
    'Pool samples added to the 404 training samples: 5, chosen at random in the whole pool.'
    """

    is_baseline = True

    def select(self, slices: Sequence[FailureSlice], material: RepairMaterial) -> TrainingSelection:
        pool = open_pool(material, "pool-random")
        candidates = pool.candidates(slices, self.within)
        chosen = generator(material.seed, "pool-random").permutation(candidates)[: pool.budget]
        return with_added(material, chosen, f"at random {self.place}")
