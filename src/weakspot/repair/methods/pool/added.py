"""What strategies that add samples of a pool have in common: where they look, and how training goes with what was chosen."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from weakspot.core.arrays import DoubleArray, IntArray
from weakspot.core.bounds import check_bounds
from weakspot.core.slices import FailureSlice
from weakspot.core.training_sets import (
    RepairMaterial,
    TrainingSelection,
    balanced_weights,
    class_parts,
)
from weakspot.repair.methods.pool.candidates import Within

Weighting = Literal["uniform", "balanced"]


def with_added(
    material: RepairMaterial,
    chosen: IntArray,
    how: str,
    *,
    slices: Sequence[FailureSlice] = (),
    weighting: Weighting = "uniform",
) -> TrainingSelection:
    """Return all labelled training rows and the chosen pool rows, ascending.

    Args:
        material: what was chosen from.
        chosen: pool rows, with or without a label.
        how: the words that follow "chosen" in the note.
        slices: for balanced weights.
        weighting: `uniform`, or `balanced`: the members of a slice, old and new, weigh as much as the rest of their class.
    """
    rows = np.union1d(material.labelled, chosen).astype(np.int64)
    n_open = int((~material.training.dataset.is_labelled[chosen]).sum())
    parts = [
        f"Pool samples added to the {len(material.labelled)} training samples: {len(chosen)}, chosen {how}."
    ]
    if weighting == "balanced":
        parts.append("Slice members, old and new, weigh as much as the rest of their class.")
    if n_open:
        parts.append(f"Of these wait for a label: {n_open}.")
    weights = _balance(material, rows, slices) if weighting == "balanced" else np.ones(len(rows))
    return TrainingSelection(rows=rows, weights=weights, note=" ".join(parts))


def _balance(
    material: RepairMaterial, rows: IntArray, slices: Sequence[FailureSlice]
) -> DoubleArray:
    """Return weights under which slices and the rest of their class are in balance; rows without a label count once."""
    cut = class_parts(slices, material.training.only(rows))
    return balanced_weights(
        np.ones(len(rows)),
        [[np.searchsorted(rows, group) for group in parts.groups] for parts in cut],
    )


@dataclass(frozen=True, kw_only=True)
class PoolScope:
    """What strategies have in common that can look at the whole pool or inside slices.

    Args:
        within: the whole `pool`, or only what is inside the `slices`.
    """

    within: Within = "pool"

    is_baseline = False

    def __post_init__(self) -> None:
        check_bounds(self)

    @property
    def place(self) -> str:
        return "inside the slices" if self.within == "slices" else "in the whole pool"
