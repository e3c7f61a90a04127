"""Which findings of a run an earlier run had already, by id or by members."""

from collections.abc import Iterator

import numpy as np

from weakspot.app.checking.held_out import HeldOut
from weakspot.core.arrays import BoolArray
from weakspot.core.errors import DataError
from weakspot.core.run import RunRecord
from weakspot.core.samples import SampleSet
from weakspot.core.slices import FailureSlice
from weakspot.core.statistics import overlap
from weakspot.release.baseline import Baseline, HeldOutOutcomes
from weakspot.release.figures import Sighting

Members = tuple[BoolArray, BoolArray]
"""Members of two slices among the same samples."""


def sighted(record: RunRecord, baseline: Baseline, now: HeldOut, samples: SampleSet, *, same_at: float) -> tuple[Sighting, ...]:
    """Return for every finding of a run which slice of the baseline it is, if any.

    The samples of now are put to the rules of the baseline; where these read vectors of another encoder, the members that the
    baseline wrote down are compared on the samples that both have.

    Raises:
        DataError: if neither is possible for a slice of the baseline.
    """
    return tuple(_sighting(record, found, baseline, now, samples, same_at) for found in record.findings())


def _sighting(
    record: RunRecord, found: FailureSlice, baseline: Baseline, now: HeldOut, samples: SampleSet, same_at: float
) -> Sighting:
    entry = next(one for one in record.evidence if one.slice_id == found.slice_id)
    candidates = sorted(_candidates(found, baseline, now, samples), key=lambda pair: (-pair[0], pair[1].slice_id))
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


def _candidates(found: FailureSlice, baseline: Baseline, now: HeldOut, samples: SampleSet) -> Iterator[tuple[float, FailureSlice]]:
    for known, _ in baseline.run.published():
        if known.slice_id == found.slice_id:
            yield 1.0, known
        elif (known.class_name, known.side) == (found.class_name, found.side):
            yield overlap(*_members(found, known, baseline.outcomes, now, samples)), known


def _members(found: FailureSlice, known: FailureSlice, before: HeldOutOutcomes | None, now: HeldOut, samples: SampleSet) -> Members:
    rows = found.class_rows(samples.only(now.rows))
    try:
        return found.rule.members(samples, rows), known.rule.members(samples, rows)
    except DataError:
        if before is None or known.slice_id not in before.slice_members:
            raise
    _, old, new = np.intersect1d(before.keys.values, now.outcomes.keys.values, assume_unique=True, return_indices=True)
    if not len(old):
        raise DataError(
            f"The baseline's slice “{known.title}” reads vectors that the project has not, and no sample is in both.",
            fix="Write a new baseline with the present embedder.",
        )
    is_class = np.isin(now.rows[new], rows)
    return found.rule.members(samples, now.rows[new]) & is_class, known_members(before, known, old) & is_class


def known_members(before: HeldOutOutcomes, known: FailureSlice, old: np.ndarray[tuple[int], np.dtype[np.int64]]) -> BoolArray:
    """Return which of some samples of a baseline are members of a slice of it."""
    return np.asarray(before.slice_members[known.slice_id].values[old], dtype=np.bool_)
