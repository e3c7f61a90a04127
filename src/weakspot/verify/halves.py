"""Two halves of the evaluation samples: one to find slices on, one to test them on."""

from dataclasses import dataclass

import numpy as np

from weakspot.core.arrays import AnyArray, IntArray
from weakspot.core.dataset import Dataset, Task
from weakspot.core.errors import ConfigError, NotEnoughDataError
from weakspot.core.failures import FailureCriterion, class_problems
from weakspot.core.seeding import generator

LEAST_IMAGES = 2


@dataclass(frozen=True, kw_only=True, eq=False)
class Halves:
    """Rows for discovery and rows for confirmation, ascending and disjoint."""

    discovery: IntArray
    confirmation: IntArray


def split_halves(
    dataset: Dataset,
    rows: IntArray,
    criterion: FailureCriterion,
    *,
    seed: int,
    discovery_share: float = 0.5,
) -> Halves:
    """Split rows so that both parts have the same share of every class and prediction.

    Samples with the same content, and those of one group, stay together. The split depends on the contents and the seed, not on
    the order of the rows.

    Args:
        dataset: all samples.
        rows: the rows to split, usually those of the validation split.
        criterion: what counts as a failure.
        seed: seed of the run.
        discovery_share: share of the samples that discovery may see.
    """
    if not 0.0 < discovery_share < 1.0:
        raise ConfigError(
            "The setting discovery_share must lie between 0 and 1.", given=discovery_share
        )
    units = _units(dataset, rows, _strata(dataset, rows, criterion))
    if units.n_units < LEAST_IMAGES:
        raise NotEnoughDataError(
            "There are too few evaluation samples to hold some of them back.",
            given=units.n_units,
            fix="Label more samples.",
        )
    chance = generator(seed, "halves").permutation(units.n_units)
    order = np.lexsort((chance, units.sizes, units.strata))
    # Taking every n-th along the sorted strata keeps shares equal within each stratum and over all.
    steps = np.floor(np.arange(units.n_units + 1) * discovery_share + 0.5)
    for_discovery = np.zeros(units.n_units, dtype=np.bool_)
    for_discovery[order] = np.diff(steps) > 0
    chosen = for_discovery[units.unit_of]
    return Halves(discovery=np.sort(rows[chosen]), confirmation=np.sort(rows[~chosen]))


@dataclass(frozen=True, kw_only=True, eq=False)
class _Units:
    """What goes to one half as a whole: groups, in the order of their first content hash.

    Args:
        unit_of: unit of every row [n].
        sizes: different images of every unit [u].
        strata: stratum of every unit [u].
    """

    unit_of: IntArray
    sizes: IntArray
    strata: AnyArray

    @property
    def n_units(self) -> int:
        return len(self.sizes)


def _units(dataset: Dataset, rows: IntArray, strata: AnyArray) -> _Units:
    hashes = np.array(dataset.content_hashes(rows))
    _, first, content_of = np.unique(hashes, return_index=True, return_inverse=True)
    groups = dataset.groups[rows][first]
    _, place, group_of = np.unique(groups, return_index=True, return_inverse=True)
    # Contents are sorted, so the first place of a group is that of its smallest hash.
    rank = np.empty(len(place), dtype=np.int64)
    rank[np.argsort(place)] = np.arange(len(place))
    unit_of = rank[group_of]
    # A group is of the stratum that most of its images are of; of the lower one among equals.
    counted, numbers = np.unique(np.stack([unit_of, strata[first]]), axis=1, return_counts=True)
    order = np.lexsort((counted[1], -numbers, counted[0]))
    leading = order[np.unique(counted[0][order], return_index=True)[1]]
    return _Units(
        unit_of=unit_of[content_of],
        sizes=np.bincount(unit_of, minlength=len(place)),
        strata=counted[1][leading],
    )


def _strata(dataset: Dataset, rows: IntArray, criterion: FailureCriterion) -> AnyArray:
    """Return for every row a number that is shared by samples with the same labels and prediction."""
    place = np.empty(len(dataset), dtype=np.int64)
    place[rows] = np.arange(len(rows))
    failed = np.zeros(len(rows), dtype=np.int64)
    for problem in class_problems(dataset, rows, criterion):
        failed[place[problem.rows]] |= problem.failed
    if dataset.task is Task.SINGLE_LABEL:
        return np.asarray(dataset.labels[rows] * 2 + failed)
    signatures = np.packbits(dataset.label_matrix[rows], axis=1)
    keys = np.concatenate([signatures, failed[:, None].astype(np.uint8)], axis=1)
    return np.asarray(np.unique(keys, axis=0, return_inverse=True)[1]).ravel()
