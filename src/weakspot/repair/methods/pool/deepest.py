"""Adding the pool samples that lie deepest inside the slices."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

import numpy as np

from weakspot.core.arrays import BoolArray, IntArray
from weakspot.core.bounds import check_bounds
from weakspot.core.samples import SampleSet
from weakspot.core.slices import FailureSlice
from weakspot.core.training_sets import RepairMaterial, TrainingSelection
from weakspot.repair.methods.pool.added import Weighting, with_added
from weakspot.repair.methods.pool.candidates import OpenPool, nothing_inside, open_pool


@dataclass(frozen=True, kw_only=True)
class DeepestRepairer:
    """Adds the samples deepest inside each slice by the score of its rule, the budget shared equally among slices.

    After Jain, Lawrence, Moitra and Madry, *Distilling Model Failures as Directions in Latent Space* (2023): the K images of a
    class with the most negative decision values, which are the largest scores here. Who is of the class is known if the whole pool
    is labelled, and judged without labels otherwise.

    Args:
        only_members: whether a slice with too few members leaves the rest of its share to others; otherwise its nearest
            non-members follow, as in the paper.
        weighting: `uniform`, or `balanced`: the members of a slice, old and new, weigh as much as the rest of their class.

    >>> from weakspot.testing.examples import repair_example
    >>> slices, material = repair_example()
    >>> DeepestRepairer().select(slices, material).note
    'Pool samples added to the 404 training samples: 5, chosen as the deepest inside the slices.'
    """

    only_members: bool = True
    weighting: Weighting = "uniform"

    is_baseline = False

    def __post_init__(self) -> None:
        check_bounds(self)

    def select(self, slices: Sequence[FailureSlice], material: RepairMaterial) -> TrainingSelection:
        """Return training rows and the deepest pool rows; the seed has no influence."""
        pool = open_pool(material, "pool-deepest")
        orders = [self._deepest_first(found, pool) for found in slices]
        chosen = np.array(list(islice(_in_turn(orders), pool.budget)), dtype=np.int64)
        if slices and not len(chosen):
            raise nothing_inside(pool.strategy, len(pool.rows))
        return with_added(
            material,
            chosen,
            "as the deepest inside the slices",
            slices=slices,
            weighting=self.weighting,
        )

    def _deepest_first(self, found: FailureSlice, pool: OpenPool) -> list[int]:
        scores = found.rule.scores(pool.samples, pool.rows)
        is_open = (
            found.rule.members(pool.samples, pool.rows)
            if self.only_members
            else np.isfinite(scores)
        )
        rows, depths = pool.rows[is_open], scores[is_open]
        is_of_class = _is_of_class(found, rows, pool)
        order = np.argsort(-depths[is_of_class], kind="stable")
        return [int(row) for row in rows[is_of_class][order]]


def _is_of_class(found: FailureSlice, rows: IntArray, pool: OpenPool) -> BoolArray:
    given: SampleSet | None = pool.material.pool
    if given is not None and given.dataset.is_labelled[given.rows].all():
        return np.isin(rows, found.class_rows(given))
    return pool.guess.possible(found, rows, pool.budget)


def _in_turn(orders: Sequence[Sequence[int]]) -> Iterator[int]:
    """Yield the best row of every order in turn, then the next best; a row in several orders comes once, for the first of them.

    >>> list(_in_turn([[4, 2, 9], [2, 7], []]))
    [4, 2, 9, 7]
    """
    taken: set[int] = set()
    waiting = [iter(order) for order in orders]
    while waiting:
        going_on = []
        for order in waiting:
            row = next((row for row in order if row not in taken), None)
            if row is None:
                continue
            taken.add(row)
            going_on.append(order)
            yield row
        waiting = going_on
