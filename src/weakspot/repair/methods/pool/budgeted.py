"""Adding pool samples of the worst slices, the budget shared by their failures, least sure first."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from weakspot.core.arrays import DoubleArray, IntArray
from weakspot.core.bounds import PositiveFraction, check_bounds
from weakspot.core.errors import NotEnoughDataError
from weakspot.core.evidence import Evidence
from weakspot.core.slices import FailureSlice
from weakspot.core.training_sets import RepairMaterial, TrainingSelection
from weakspot.repair.methods.pool.added import Weighting, with_added
from weakspot.repair.methods.pool.candidates import OpenPool, nothing_inside, open_pool
from weakspot.repair.methods.pool.doubts import least_sure, low_confidence

STRATEGY = "pool-budgeted"


@dataclass(frozen=True, kw_only=True)
class BudgetedRepairer:
    """Takes slices by failure rate until they hold most failures, and shares the budget in proportion to their failures.

    After Chen, Li and Xu, *HiBug: On Human-Interpretable Model Debug* (2023). Labels of pool samples are never
    looked at: a sample counts for the first slice, by failure rate, whose rule holds and whose class it may be of.

    Args:
        beta: share of all failures at which no further slice is taken.
        weighting: `uniform`, or `balanced`: the members of a slice, old and new, weigh as much as the rest of their class.

    >>> from weakspot.testing.examples import repair_example
    >>> slices, material = repair_example()
    >>> BudgetedRepairer().select(slices, material).note
    'Pool samples added to the 404 training samples: 5, chosen in 2 of 2 slices by their share of the failures, least sure first.'
    """

    beta: PositiveFraction = 0.9
    weighting: Weighting = "uniform"

    is_baseline = False

    def __post_init__(self) -> None:
        check_bounds(self)

    def select(self, slices: Sequence[FailureSlice], material: RepairMaterial) -> TrainingSelection:
        """Return training rows and pool rows of the worst slices; the seed has no influence."""
        pool = open_pool(material, STRATEGY)
        if not slices:
            return with_added(material, pool.rows[:0], "for no slice")
        worst = _worst(slices, material, self.beta)
        ordered = _claimed([found for found, _ in worst], pool)
        failures = np.array([evidence.failures_inside for _, evidence in worst], dtype=np.float64)
        counts = apportioned(pool.budget, failures, np.array([len(rows) for rows in ordered]))
        chosen = np.concatenate([rows[:count] for rows, count in zip(ordered, counts, strict=True)])
        if not len(chosen):
            raise nothing_inside(STRATEGY, len(pool.rows))
        n_unknown = sum(found.slice_id not in material.evidence for found in slices)
        unknown = f"; left out for want of evidence: {n_unknown}" if n_unknown else ""
        how = f"in {len(worst)} of {len(slices)} slices by their share of the failures, least sure first{unknown}"
        return with_added(material, chosen, how, slices=slices, weighting=self.weighting)


def _worst(
    slices: Sequence[FailureSlice], material: RepairMaterial, beta: float
) -> list[tuple[FailureSlice, Evidence]]:
    known = [
        (found, material.evidence[found.slice_id])
        for found in slices
        if found.slice_id in material.evidence
    ]
    known = [(found, evidence) for found, evidence in known if evidence.failures_inside]
    if not known:
        raise NotEnoughDataError(
            "It is not known how often the slices fail.",
            where=STRATEGY,
            fix="Verify them first, or choose another strategy.",
        )
    known.sort(key=lambda pair: (-pair[1].rate_inside, -pair[1].failures_inside, pair[0].slice_id))
    counts = np.cumsum([evidence.failures_inside for _, evidence in known])
    wanted = beta * (material.n_failures or counts[-1])
    return known[: int(np.searchsorted(counts, wanted)) + 1]


def _claimed(slices: Sequence[FailureSlice], pool: OpenPool) -> list[IntArray]:
    """Return for every slice the rows that no earlier one has, least sure first."""
    rest = least_sure(pool.samples.dataset, pool.rows, low_confidence, STRATEGY)
    found_rows: list[IntArray] = []
    for found in slices:
        is_inside = np.isin(rest, pool.members(found))
        found_rows.append(rest[is_inside])
        rest = rest[~is_inside]
    return found_rows


def apportioned(budget: int, shares: DoubleArray, most: IntArray) -> IntArray:
    """Return a budget divided in proportion to shares, by largest remainder; what one cannot use is divided among the others.

    >>> apportioned(10, np.array([6.0, 3.0, 1.0]), np.array([99, 99, 99])).tolist()
    [6, 3, 1]
    >>> apportioned(10, np.array([6.0, 3.0, 1.0]), np.array([2, 99, 99])).tolist()
    [2, 6, 2]
    """
    given = np.zeros(len(shares), dtype=np.int64)
    while (left := budget - int(given.sum())) > 0 and (
        is_open := (given < most) & (shares > 0)
    ).any():
        exact = left * np.where(is_open, shares, 0.0) / shares[is_open].sum()
        whole = np.floor(exact).astype(np.int64)
        remainders = np.where(is_open, exact - whole, -1.0)
        whole[np.argsort(-remainders, kind="stable")[: left - int(whole.sum())]] += 1
        given = np.minimum(given + whole, most)
    return given
