"""Retraining with the slice and the rest of its class in balance."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from weakspot.core.arrays import DoubleArray, IntArray
from weakspot.core.repairs import TrainingSelection, balanced_selection
from weakspot.core.samples import SampleSet
from weakspot.core.slices import FailureSlice


@dataclass(frozen=True, kw_only=True)
class SliceBalancedRepairer:
    """Makes the members of a slice weigh as much as the rest of their class.

    After Lee, Lam, Vasconcelos, Bernstein and Finn, *Clarify: Improving Model Robustness With Natural Language Corrections* (2024).
    """

    is_baseline = False

    def select(
        self, slices: Sequence[FailureSlice], *, training: SampleSet, pool: SampleSet | None, budget: int, seed: int
    ) -> TrainingSelection:
        """Return all training rows and the deepest pool members, weighted; the seed has no influence."""
        del seed
        chosen = balanced_selection(slices, training=training, pool=pool, budget=budget, rank=_depth)
        return replace(chosen, note=f"Slice members weigh as much as the rest of their class: {chosen.note}")


def _depth(found: FailureSlice, samples: SampleSet, rows: IntArray) -> DoubleArray:
    return found.rule.scores(samples, rows)
