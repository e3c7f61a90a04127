"""Held-out samples of a run, and which of its findings a baseline has seen."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from weakspot.core.arrays import BoolArray, IntArray
from weakspot.core.dataset import Split
from weakspot.core.errors import DataError
from weakspot.core.failures import FailureCriterion, class_problems
from weakspot.core.identity import identities
from weakspot.core.run import RunRecord
from weakspot.core.samples import SampleSet
from weakspot.core.slices import FailureSlice
from weakspot.core.statistics import overlap
from weakspot.pipeline.halves import split_in_halves
from weakspot.pipeline.settings import Settings
from weakspot.release.baseline import Baseline, ClassPredictions, HeldOutPredictions
from weakspot.release.figures import Sighting
from weakspot.release.packing import PackedBits, PackedKeys

HELD_OUT = (Split.VALIDATION, Split.TEST)


@dataclass(frozen=True, kw_only=True, eq=False)
class HeldOut:
    """Held-out samples with their predictions.

    Args:
        rows: rows of the data set, every image once.
        predictions: of these rows, in their order.
    """

    rows: IntArray
    predictions: HeldOutPredictions


def held_out(
    record: RunRecord, samples: SampleSet, settings: Settings, criterion: FailureCriterion
) -> HeldOut:
    """Return the labelled validation and test samples with predictions, members of published slices, and who found them."""
    rows = _held_out_rows(samples)
    classes = tuple(
        ClassPredictions(
            class_name=problem.class_name,
            side=problem.side,
            members=PackedBits.of(np.isin(rows, problem.rows)),
            failed=PackedBits.of(np.isin(rows, problem.rows[problem.failed])),
        )
        for problem in class_problems(samples.dataset, rows, criterion)
    )
    discovery = {
        found_on.digest(): PackedBits.of(np.isin(rows, found_on.rows))
        for found_on, _ in split_in_halves(samples, settings, criterion, slices=record.slices)
    }
    members = {
        found.slice_id: PackedBits.of(_members(record, found.slice_id, samples, rows))
        for found, _ in record.published()
    }
    keys = PackedKeys.of(identities(samples.dataset, rows))
    return HeldOut(
        rows=rows,
        predictions=HeldOutPredictions(
            keys=keys, classes=classes, discovery=discovery, slice_members=members
        ),
    )


def _held_out_rows(samples: SampleSet) -> IntArray:
    dataset = samples.dataset
    rows = dataset.rows_of(*HELD_OUT)
    rows = rows[dataset.is_labelled[rows]]
    keys = PackedKeys.of(identities(dataset, rows)).values
    _, first = np.unique(keys, return_index=True)
    return np.asarray(rows[np.sort(first)], dtype=np.int64)


def _members(record: RunRecord, slice_id: str, samples: SampleSet, rows: IntArray) -> BoolArray:
    return record.slices_by_id()[slice_id].rule.members(samples, rows)


Members = tuple[BoolArray, BoolArray]
"""Members of two slices among the same samples."""


def find_sightings(
    record: RunRecord, baseline: Baseline, now: HeldOut, samples: SampleSet, *, same_at: float
) -> tuple[Sighting, ...]:
    """Return for every finding of a run which slice of the baseline it is, if any.

    The samples of now are put to the rules of the baseline; where these read embeddings of another encoder, the members that the
    baseline wrote down are compared on the samples that both have.

    Raises:
        DataError: if neither is possible for a slice of the baseline.
    """
    return tuple(
        _sighting(record, found, baseline, now, samples, same_at) for found in record.findings()
    )


def _sighting(
    record: RunRecord,
    found: FailureSlice,
    baseline: Baseline,
    now: HeldOut,
    samples: SampleSet,
    same_at: float,
) -> Sighting:
    entry = next(one for one in record.evidence if one.slice_id == found.slice_id)
    candidates = sorted(
        _candidates(found, baseline, now, samples), key=lambda pair: (-pair[0], pair[1].slice_id)
    )
    share, nearest = candidates[0] if candidates else (0.0, None)
    is_known = nearest is not None and share >= same_at
    return Sighting(
        subject=found.title,
        slice_id=found.slice_id,
        p_value=entry.p_value,
        q_value=entry.q_value,
        weight=entry.weight,
        known_id=nearest.slice_id if nearest is not None and is_known else "",
        known_as=nearest.title if nearest is not None and is_known else "",
        overlap=share,
    )


def _candidates(
    found: FailureSlice, baseline: Baseline, now: HeldOut, samples: SampleSet
) -> Iterator[tuple[float, FailureSlice]]:
    for known, _ in baseline.run.published():
        if known.slice_id == found.slice_id:
            yield 1.0, known
        elif (known.class_name, known.side) == (found.class_name, found.side):
            yield (
                overlap(*_compared_members(found, known, baseline.predictions, now, samples)),
                known,
            )


def _compared_members(
    found: FailureSlice,
    known: FailureSlice,
    before: HeldOutPredictions | None,
    now: HeldOut,
    samples: SampleSet,
) -> Members:
    rows = found.class_rows(samples.only(now.rows))
    try:
        return found.rule.members(samples, rows), known.rule.members(samples, rows)
    except DataError:
        if before is None or known.slice_id not in before.slice_members:
            raise
    _, old, new = np.intersect1d(
        before.keys.values, now.predictions.keys.values, assume_unique=True, return_indices=True
    )
    if not len(old):
        raise DataError(
            f"The baseline's slice “{known.title}” reads embeddings that the project has not, and no sample is in both.",
            fix="Write a new baseline with the present embedder.",
        )
    is_class = np.isin(now.rows[new], rows)
    return found.rule.members(samples, now.rows[new]) & is_class, known_members(
        before, known, old
    ) & is_class


def known_members(
    before: HeldOutPredictions, known: FailureSlice, old: np.ndarray[tuple[int], np.dtype[np.int64]]
) -> BoolArray:
    return np.asarray(before.slice_members[known.slice_id].values[old], dtype=np.bool_)
