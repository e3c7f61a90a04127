"""Two halves of the evaluation samples: one to find slices on, one to test them on."""

from dataclasses import dataclass

import numpy as np

from weakspot.core.arrays import AnyArray, IntArray
from weakspot.core.dataset import Dataset, Task
from weakspot.core.errors import ConfigError, NotEnoughDataError
from weakspot.core.failures import FailureCriterion, class_problems
from weakspot.core.seeding import generator

LEAST_PICTURES = 2


@dataclass(frozen=True, kw_only=True, eq=False)
class Halves:
    """Rows for discovery and rows for confirmation, ascending and disjoint."""

    discovery: IntArray
    confirmation: IntArray


def split_halves(
    dataset: Dataset, rows: IntArray, criterion: FailureCriterion, *, seed: int, discovery_share: float = 0.5
) -> Halves:
    """Split rows so that both parts have the same share of every class and outcome.

    Samples with the same content stay together. The split depends on the contents and the seed, not on the order of the rows.

    Args:
        dataset: all samples.
        rows: the rows to split, usually those of the validation split.
        criterion: what counts as a failure.
        seed: seed of the run.
        discovery_share: share of the samples that discovery may see.
    """
    if not 0.0 < discovery_share < 1.0:
        raise ConfigError("The setting discovery_share must lie between 0 and 1.", given=discovery_share)
    hashes = np.array(dataset.content_hashes(rows))
    contents, first, group_of = np.unique(hashes, return_index=True, return_inverse=True)
    if len(contents) < LEAST_PICTURES:
        raise NotEnoughDataError(
            "There are too few evaluation samples to hold some of them back.", given=len(contents), fix="Label more samples."
        )
    strata = _strata(dataset, rows, criterion)[first]
    order = np.lexsort((generator(seed, "halves").permutation(len(contents)), strata))
    # Taking every so-manieth along the sorted strata keeps shares equal within each stratum and over all.
    steps = np.floor(np.arange(len(contents) + 1) * discovery_share + 0.5)
    for_discovery = np.zeros(len(contents), dtype=np.bool_)
    for_discovery[order] = np.diff(steps) > 0
    chosen = for_discovery[group_of]
    return Halves(discovery=np.sort(rows[chosen]), confirmation=np.sort(rows[~chosen]))


def _strata(dataset: Dataset, rows: IntArray, criterion: FailureCriterion) -> AnyArray:
    """Return for every row a number that is shared by samples with the same labels and outcome."""
    place = {int(row): position for position, row in enumerate(rows)}
    failed = np.zeros(len(rows), dtype=np.int64)
    for problem in class_problems(dataset, rows, criterion):
        positions = [place[int(row)] for row in problem.rows]
        failed[positions] |= problem.failed
    if dataset.task is Task.SINGLE_LABEL:
        return np.asarray(dataset.labels[rows] * 2 + failed)
    signatures = np.packbits(dataset.label_matrix[rows], axis=1)
    keys = np.concatenate([signatures, failed[:, None].astype(np.uint8)], axis=1)
    return np.asarray(np.unique(keys, axis=0, return_inverse=True)[1]).ravel()
