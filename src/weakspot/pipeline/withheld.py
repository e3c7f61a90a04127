"""Group labels that only score: whoever looks for failures, or for words, must not read them."""

from collections.abc import Sequence
from dataclasses import replace

from weakspot.core.dataset import METADATA_PREFIX
from weakspot.core.samples import SampleSet
from weakspot.core.slices import FailureSlice
from weakspot.pipeline.halves import Halves


def withhold(samples: SampleSet, column: str, *, slices: Sequence[FailureSlice] = ()) -> SampleSet:
    """Return the samples without a metadata column; as they are if there is none, or if a slice is defined by it.

    Args:
        samples: with their columns.
        column: the one that `[repair] groups` names; empty for none.
        slices: what has to be found again in the samples: slices of an earlier run may be defined by the column.
    """
    if column not in samples.dataset.metadata_names or any(
        column in found.rule.columns for found in slices
    ):
        return samples
    table = samples.dataset.table.drop_columns([METADATA_PREFIX + column])
    return replace(samples, dataset=replace(samples.dataset, table=table))


def withhold_from_halves(
    pairs: Halves, column: str, *, slices: Sequence[FailureSlice] = ()
) -> Halves:
    """Return both halves of every fold without a metadata column."""
    return tuple(
        (withhold(discovery, column, slices=slices), withhold(confirmation, column, slices=slices))
        for discovery, confirmation in pairs
    )
