"""The two halves of the samples: slices are looked for in one and confirmed in the other.

Group labels that only score are withheld from both.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import TypeAlias

import numpy as np

from weakspot.core.dataset import METADATA_PREFIX, Dataset, Split, as_given
from weakspot.core.errors import NotEnoughDataError
from weakspot.core.failures import FailureCriterion, class_problems
from weakspot.core.samples import SampleSet
from weakspot.core.slices import DataUse, FailureSlice
from weakspot.run.settings import Settings
from weakspot.verify.halves import Halves as SplitHalves
from weakspot.verify.halves import split_halves

DISCOVERY, CONFIRMATION = "discovery half", "confirmation half"
Halves: TypeAlias = tuple[tuple[SampleSet, SampleSet], ...]
LARGE_CLASS = 2_000
"""Where every class has so many samples in a half, its failures are fitted there only. Measured in docs/decisions/031."""


def evaluated_splits(settings: Settings, dataset: Dataset) -> tuple[Split, ...]:
    """Return the splits that failures are looked for in: as configured, or test if those have no labelled sample and test has."""
    configured = tuple(Split(name) for name in settings.verify.splits)
    for splits in (configured, (Split.TEST,)):
        if dataset.is_labelled[dataset.rows_of(*splits)].any():
            return splits
    return configured


def split_in_halves(samples: SampleSet, settings: Settings, criterion: FailureCriterion) -> Halves:
    """Return (discovery half, confirmation half), once or, for cross-fitting, also with their parts swapped and (none, all).

    The data decide, not the run's seed: other halves would be another try at the same samples. Labels that people corrected do
    not move a sample to the other half; one that they found of no use is left out of its own.
    """
    splits = evaluated_splits(settings, samples.dataset)
    names = [split.value for split in splits]
    given = as_given(samples.dataset)
    rows = given.rows_of(*splits)
    rows = rows[given.is_labelled[rows]]
    if not len(rows):
        counts = {split.value: len(samples.dataset.rows_of(split)) for split in Split}
        raise NotEnoughDataError(
            f"There are no labelled samples in {' or '.join(names)} to look for failures in.",
            given=counts,
            fix="Set [verify] splits, or [data] validation_fraction, in weakspot.toml.",
        )
    split = _usable(split_halves(given, rows, criterion, seed=0), samples.dataset)
    title = " and ".join(names)
    pairs = [(split.discovery, split.confirmation)]
    if settings.verify.scheme == "cross-fit":
        pairs.append((split.confirmation, split.discovery))
    folds = tuple(
        (
            samples.only(found_on, name=f"{title}, {DISCOVERY}{fold}"),
            samples.only(kept, name=f"{title}, {CONFIRMATION}{fold}"),
        )
        for (found_on, kept), fold in zip(pairs, ("", " (halves swapped)"), strict=False)
    )
    return folds if len(folds) == 1 else (*folds, _blind_pair(samples, split, title))


def fitted_halves(halves: Halves, criterion: FailureCriterion) -> tuple[SampleSet, ...]:
    """Return the discovery halves that methods fit failures on, beside rules that are made without predictions.

    Both of cross-fitting, or only the first one where every class is so large that the other would hardly add anything.
    """
    found_on = tuple(discovery for discovery, _ in halves if len(discovery))
    if len(found_on) == 1:
        return found_on
    problems = class_problems(found_on[0].dataset, found_on[0].rows, criterion)
    is_large = min((len(one.rows) * one.worth for one in problems), default=0) >= LARGE_CLASS
    return found_on[:1] if is_large else found_on


def _usable(split: SplitHalves, dataset: Dataset) -> SplitHalves:
    found, kept = (
        rows[dataset.is_labelled[rows]] for rows in (split.discovery, split.confirmation)
    )
    return SplitHalves(discovery=found, confirmation=kept)


def _blind_pair(samples: SampleSet, split: SplitHalves, title: str) -> tuple[SampleSet, SampleSet]:
    """Return no samples and all samples: rules that are made without predictions may be tested on all of them."""
    rows = np.sort(np.concatenate([split.discovery, split.confirmation]))
    return samples.only(rows[:0], name=DataUse.nothing().name), samples.only(rows, name=title)


def used_rows(samples: SampleSet, settings: Settings) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """Return the rows on which slices were found or confirmed."""
    return samples.dataset.rows_of(*evaluated_splits(settings, samples.dataset))


def withhold(samples: SampleSet, column: str, *, slices: Sequence[FailureSlice] = ()) -> SampleSet:
    """Return the samples without a metadata column; as they are if there is none, or if a slice is defined by it.

    Args:
        samples: with their columns.
        column: the one that `[repair] groups` names; empty for none.
        slices: what has to be found again in the samples: slices may be defined by the column.
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
