"""A split for samples that name none: seeded, stratified, and the same for copies of the same picture."""

import numpy as np

from weakspot.core.arrays import AnyArray
from weakspot.core.dataset import SPLIT_ORDER, Split
from weakspot.core.seeding import generator
from weakspot.ingest.assembly_settings import AssemblySettings
from weakspot.ingest.examined_survey import NO_SPLIT, UNLABELLED

_UNIT = 1_000_000


def choose_splits(given: AnyArray, strata: AnyArray, first_rows: AnyArray, settings: AssemblySettings) -> AnyArray:
    """Return the split of every sample [n].

    Args:
        given: position of the given split in `SPLIT_ORDER`, -1 where none is given [n].
        strata: number of the combination of labels, -1 unlabelled [n].
        first_rows: the first row with the same content, itself if it is the first [n].
        settings: fractions, default and seed.
    """
    chosen = given.astype(np.int8)
    if settings.default_split is not None:
        return np.where(chosen == NO_SPLIT, SPLIT_ORDER.index(settings.default_split), chosen).astype(np.int8)
    chosen = _as_copies(chosen, first_rows)
    is_open = chosen == NO_SPLIT
    chosen[is_open & (strata == UNLABELLED)] = SPLIT_ORDER.index(Split.POOL)
    is_original = (chosen == NO_SPLIT) & (first_rows == np.arange(len(chosen), dtype=first_rows.dtype))
    chosen[is_original] = _stratified(strata[is_original], settings)
    return np.where(chosen == NO_SPLIT, chosen[first_rows], chosen).astype(np.int8)


def _as_copies(given: AnyArray, first_rows: AnyArray) -> AnyArray:
    """Give rows without a split the split that a copy of the same picture was given."""
    named = np.flatnonzero(given != NO_SPLIT)[::-1]
    of_first = np.full(len(given), NO_SPLIT, dtype=np.int8)
    of_first[first_rows[named]] = given[named]
    return np.where(given == NO_SPLIT, of_first[first_rows], given).astype(np.int8)


def _stratified(strata: AnyArray, settings: AssemblySettings) -> AnyArray:
    """Deal rows out so that every stratum, large or small, comes as near to the fractions as whole samples allow."""
    small = np.int32 if len(strata) <= np.iinfo(np.int32).max else np.int64
    shuffled = generator(settings.seed, "splits").permutation(len(strata)).astype(small)
    order = shuffled[np.argsort(strata[shuffled], kind="stable").astype(small)]
    del shuffled
    chosen = np.full(len(strata), SPLIT_ORDER.index(Split.TRAIN), dtype=np.int8)
    is_test = _every(len(order), settings.test_fraction)
    chosen[order[is_test]] = SPLIT_ORDER.index(Split.TEST)
    rest = order[~is_test]
    share = settings.validation_fraction / (1 - settings.test_fraction) if settings.test_fraction < 1 else 0.0
    chosen[rest[_every(len(rest), min(share, 1.0))]] = SPLIT_ORDER.index(Split.VALIDATION)
    return chosen


def _every(n_rows: int, fraction: float) -> AnyArray:
    """Return an evenly spaced choice of a fraction of rows; whole-number arithmetic keeps it the same everywhere."""
    passed = np.arange(n_rows + 1, dtype=np.int64)
    passed *= round(fraction * _UNIT)
    passed += _UNIT // 2
    passed //= _UNIT
    return np.asarray(passed[1:] > passed[:-1])
