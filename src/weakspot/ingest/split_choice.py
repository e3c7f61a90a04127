"""A split for samples that name none: seeded, stratified, and the same for copies of an image and all samples of a group."""

import numpy as np

from weakspot.core.arrays import AnyArray
from weakspot.core.dataset import SPLIT_ORDER, Split
from weakspot.core.seeding import generator
from weakspot.ingest.assembly_settings import AssemblySettings
from weakspot.ingest.examined_survey import NO_SPLIT, UNLABELLED

_UNIT = 1_000_000


def choose_splits(
    given: AnyArray,
    strata: AnyArray,
    first_rows: AnyArray,
    settings: AssemblySettings,
    *,
    has_groups: bool = False,
) -> AnyArray:
    """Return the split of every sample [n].

    Args:
        given: position of the given split in `SPLIT_ORDER`, -1 where none is given [n].
        strata: number of the combination of labels, -1 unlabelled [n].
        first_rows: the first row with the same content or of the same group, itself if it is the first [n].
        settings: fractions, default and seed.
        has_groups: whether rows of different content belong together; large groups are then dealt out as evenly as small ones.
    """
    chosen = given.astype(np.int8)
    if settings.default_split is not None:
        return np.where(
            chosen == NO_SPLIT, SPLIT_ORDER.index(settings.default_split), chosen
        ).astype(np.int8)
    chosen = _as_copies(chosen, first_rows)
    is_open = chosen == NO_SPLIT
    chosen[is_open & (strata == UNLABELLED)] = SPLIT_ORDER.index(Split.POOL)
    if has_groups:
        return _with_groups(chosen, strata, first_rows, settings)
    is_original = (chosen == NO_SPLIT) & (
        first_rows == np.arange(len(chosen), dtype=first_rows.dtype)
    )
    chosen[is_original] = _stratify(strata[is_original], settings)
    return np.where(chosen == NO_SPLIT, chosen[first_rows], chosen).astype(np.int8)


def _with_groups(
    chosen: AnyArray, strata: AnyArray, first_rows: AnyArray, settings: AssemblySettings
) -> AnyArray:
    open_rows = np.flatnonzero(chosen == NO_SPLIT)
    # The first row of a group may be unlabelled or have a split; the first that has not stands for those that have not.
    _, leading, unit_of = np.unique(first_rows[open_rows], return_index=True, return_inverse=True)
    sizes = np.bincount(unit_of, minlength=len(leading))
    chosen[open_rows] = _stratify(strata[open_rows[leading]], settings, sizes)[unit_of]
    return chosen


def _as_copies(given: AnyArray, first_rows: AnyArray) -> AnyArray:
    """Give rows without a split the split that a copy of the same image, or another of the group, was given."""
    named = np.flatnonzero(given != NO_SPLIT)[::-1]
    of_first = np.full(len(given), NO_SPLIT, dtype=np.int8)
    of_first[first_rows[named]] = given[named]
    return np.where(given == NO_SPLIT, of_first[first_rows], given).astype(np.int8)


def _stratify(
    strata: AnyArray, settings: AssemblySettings, sizes: AnyArray | None = None
) -> AnyArray:
    """Deal groups out so that every stratum, large or small, comes as near to the fractions as whole groups allow."""
    small = np.int32 if len(strata) <= np.iinfo(np.int32).max else np.int64
    shuffled = generator(settings.seed, "splits").permutation(len(strata)).astype(small)
    if sizes is not None:
        shuffled = shuffled[np.argsort(sizes[shuffled], kind="stable").astype(small)]
    order = shuffled[np.argsort(strata[shuffled], kind="stable").astype(small)]
    del shuffled
    chosen = np.full(len(strata), SPLIT_ORDER.index(Split.TRAIN), dtype=np.int8)
    is_test = _every(len(order), settings.test_fraction)
    chosen[order[is_test]] = SPLIT_ORDER.index(Split.TEST)
    rest = order[~is_test]
    share = (
        settings.validation_fraction / (1 - settings.test_fraction)
        if settings.test_fraction < 1
        else 0.0
    )
    chosen[rest[_every(len(rest), min(share, 1.0))]] = SPLIT_ORDER.index(Split.VALIDATION)
    return chosen


def _every(n_rows: int, fraction: float) -> AnyArray:
    """Return an evenly spaced choice of a fraction of rows; whole-number arithmetic keeps it the same everywhere."""
    passed = np.arange(n_rows + 1, dtype=np.int64)
    passed *= round(fraction * _UNIT)
    passed += _UNIT // 2
    passed //= _UNIT
    return np.asarray(passed[1:] > passed[:-1])
