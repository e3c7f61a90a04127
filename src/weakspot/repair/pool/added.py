"""Training samples together with what was chosen from a pool."""

from collections.abc import Sequence
from typing import Literal

import numpy as np

from weakspot.core.arrays import DoubleArray, IntArray
from weakspot.core.errors import ConfigError
from weakspot.core.slices import FailureSlice
from weakspot.core.training_sets import RepairMaterial, TrainingSelection, balanced_weights, class_parts

Weighting = Literal["uniform", "balanced"]


def refuse_unknown(name: str, given: str, known: Sequence[str]) -> None:
    """Refuse a parameter that is none of the known words.

    Raises:
        ConfigError: if it is none.
    """
    if given not in known:
        raise ConfigError(f"The parameter {name} is unknown.", where="[repair]", given=given, fix=f"Choose one of {list(known)}.")


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
    parts = [f"Pool samples added to the {len(material.labelled)} training samples: {len(chosen)}, chosen {how}."]
    if weighting == "balanced":
        parts.append("Slice members, old and new, weigh as much as the rest of their class.")
    if n_open:
        parts.append(f"Of these wait for a label: {n_open}.")
    weights = _balanced(material, rows, slices) if weighting == "balanced" else np.ones(len(rows))
    return TrainingSelection(rows=rows, weights=weights, note=" ".join(parts))


def _balanced(material: RepairMaterial, rows: IntArray, slices: Sequence[FailureSlice]) -> DoubleArray:
    """Return weights under which slices and the rest of their class are in balance; rows without a label count once."""
    cut = class_parts(slices, material.training.only(rows))
    return balanced_weights(np.ones(len(rows)), [[np.searchsorted(rows, group) for group in parts.groups] for parts in cut])
