"""What a classifier says of held-out samples, in the form in which two of them can be compared."""

import hashlib
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from weakspot.app.config import Settings
from weakspot.app.loop import halves
from weakspot.core.arrays import BoolArray, IntArray
from weakspot.core.dataset import Dataset, Split
from weakspot.core.failures import FailureCriterion, class_problems
from weakspot.core.run import RunRecord
from weakspot.core.samples import SampleSet
from weakspot.release.baseline import ClassOutcomes, HeldOutOutcomes
from weakspot.release.packing import PackedBits, PackedKeys

HELD_OUT = (Split.VALIDATION, Split.TEST)


@dataclass(frozen=True, kw_only=True, eq=False)
class HeldOut:
    """Held-out samples with their outcomes.

    Args:
        rows: rows of the data set, every picture once.
        outcomes: of these rows, in their order.
    """

    rows: IntArray
    outcomes: HeldOutOutcomes


def held_out(record: RunRecord, samples: SampleSet, settings: Settings, criterion: FailureCriterion) -> HeldOut:
    """Return the labelled validation and test samples with outcomes, members of published slices, and who found them."""
    rows = _held_out_rows(samples)
    classes = tuple(
        ClassOutcomes(
            class_name=problem.class_name,
            side=problem.side,
            members=PackedBits.of(np.isin(rows, problem.rows)),
            failed=PackedBits.of(np.isin(rows, problem.rows[problem.failed])),
        )
        for problem in class_problems(samples.dataset, rows, criterion)
    )
    discovery = {
        found_on.digest(): PackedBits.of(np.isin(rows, found_on.rows)) for found_on, _ in halves(samples, settings, criterion)
    }
    members = {found.slice_id: PackedBits.of(_members(record, found.slice_id, samples, rows)) for found, _ in record.published()}
    keys = PackedKeys.of(pairing_hashes(samples.dataset, rows))
    return HeldOut(rows=rows, outcomes=HeldOutOutcomes(keys=keys, classes=classes, discovery=discovery, slice_members=members))


def pairing_hashes(dataset: Dataset, rows: IntArray) -> list[str]:
    """Return by what samples are known again: their pictures or, where there is none, their keys.

    The content hash of a sample without a picture covers its prediction: pairing by it would leave out whatever changed.
    """
    keys = dataset.table.column("key").take(pa.array(rows)).to_pylist()
    found = zip(dataset.content_hashes(rows), dataset.locations(rows), keys, strict=True)
    return [hashed if place is not None else hashlib.sha256(str(key).encode()).hexdigest() for hashed, place, key in found]


def _held_out_rows(samples: SampleSet) -> IntArray:
    dataset = samples.dataset
    rows = dataset.rows_of(*HELD_OUT)
    rows = rows[dataset.is_labelled[rows]]
    keys = PackedKeys.of(pairing_hashes(dataset, rows)).values
    _, first = np.unique(keys, return_index=True)
    return np.asarray(rows[np.sort(first)], dtype=np.int64)


def _members(record: RunRecord, slice_id: str, samples: SampleSet, rows: IntArray) -> BoolArray:
    return record.slices_by_id()[slice_id].rule.members(samples, rows)
