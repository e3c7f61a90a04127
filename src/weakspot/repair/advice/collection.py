"""Images that a finding could do with, and which pool images to label for a kind, best first."""

from dataclasses import dataclass

import numpy as np

from weakspot.core.arrays import BoolArray, DoubleArray, IntArray, even_part
from weakspot.core.dataset import Split
from weakspot.core.failures import FailureCriterion, Side
from weakspot.core.samples import SampleSet
from weakspot.repair.advice.kinds import (
    MAX_FITTED,
    MIN_SEEN,
    ImageKind,
    fit_probe,
    held_out_scores,
    probe_by_blocks,
    space_of,
    with_embedding,
)
from weakspot.repair.advice.learning_curve import Forecast
from weakspot.repair.collecting_needs import pool_rows
from weakspot.repair.measure import each_once, is_image_of

MIN_LISTED = 40


@dataclass(frozen=True, kw_only=True, eq=False)
class PoolChoice:
    """Pool images to label for a kind.

    Args:
        rows: rows of the data set, best first.
        is_labelled: which of them have a label already.
        n_candidates: pool images that they were chosen from.
        n_pool: all pool images.
    """

    rows: IntArray
    is_labelled: BoolArray
    n_candidates: int
    n_pool: int


def choose_from_pool(
    kind: ImageKind,
    samples: SampleSet,
    criterion: FailureCriterion,
    *,
    n_wanted: int = 0,
    seed: int,
) -> PoolChoice:
    """Return the pool images to label first: as many as a list holds, or twice as many as are wanted, since some may be of other kinds.

    Those come first that are as much like the kind as half of its own images are, and among them those in which the classifier sees least
    of the class; then the others, most like the kind first. What is labelled already comes before what is not. Of a slice only what its
    rule takes; where nothing can be compared, in the order of `pool_rows`.
    """
    pool = fresh_pool(samples)
    rows = _candidates(kind, samples, pool, criterion)
    is_labelled = samples.dataset.is_labelled[rows]
    scores = _scores(kind, samples, rows, seed=seed)
    if scores is not None:
        likeness, typical = scores
        belief = _belief(kind, samples, rows)
        is_typical = likeness >= typical
        order = np.lexsort(
            (rows, np.where(is_typical, belief, -likeness), ~is_typical, ~is_labelled)
        )
        rows, is_labelled = rows[order], is_labelled[order]
    n_listed = max(MIN_LISTED, 2 * n_wanted)
    return PoolChoice(
        rows=rows[:n_listed],
        is_labelled=is_labelled[:n_listed],
        n_candidates=len(rows),
        n_pool=len(pool),
    )


def fresh_pool(samples: SampleSet) -> IntArray:
    """Return pool rows whose image is neither trained on nor measured on, each image once."""
    dataset = samples.dataset
    rows = dataset.rows_of(Split.POOL)
    others = dataset.rows_of(Split.TRAIN, Split.VALIDATION, Split.TEST)
    return each_once(dataset, rows[~is_image_of(dataset, rows, others)])


def _candidates(
    kind: ImageKind, samples: SampleSet, pool: IntArray, criterion: FailureCriterion
) -> IntArray:
    """Return pool rows that may be of the kind: labelled with its class or not labelled at all, and inside its slice if it is one."""
    dataset = samples.dataset
    if kind.slice_ is not None:
        (own,) = pool_rows((kind.slice_,), samples, criterion)
        return own.rows[np.isin(own.rows, pool)]
    return np.asarray(pool[kind.is_of_class(pool) | ~dataset.is_labelled[pool]], dtype=np.int64)


def _scores(
    kind: ImageKind, samples: SampleSet, rows: IntArray, *, seed: int
) -> tuple[DoubleArray, float] | None:
    """Return how much each row is like the kind [n], and how much its own images are by half; None if nothing can be compared."""
    space = space_of(samples)
    if space is None:
        return None
    own = with_embedding(samples, even_part(kind.rows, MAX_FITTED), space)
    others = with_embedding(samples, even_part(_others(kind, samples), MAX_FITTED), space)
    if len(own) < MIN_SEEN or len(others) < MIN_SEEN:
        return None
    own_scores, _ = held_out_scores(samples, own, others, space, seed=seed)
    head = fit_probe(samples.embeddings(space, own), samples.embeddings(space, others))
    scores = np.nan_to_num(probe_by_blocks(samples, rows, space, head), nan=-np.inf)
    return scores, float(np.median(own_scores))


def _belief(kind: ImageKind, samples: SampleSet, rows: IntArray) -> DoubleArray:
    """Return the probability that the classifier gives to the class of the kind [n]; where it is not known, nothing tells rows apart."""
    dataset = samples.dataset
    if dataset.probabilities is None:
        return np.zeros(len(rows))
    code = dataset.class_code(kind.class_name)
    said = np.nan_to_num(np.asarray(dataset.probabilities[rows, code], dtype=np.float64), nan=1.0)
    return 1.0 - said if kind.side is Side.ABSENT else said


def _others(kind: ImageKind, samples: SampleSet) -> IntArray:
    """Return labelled rows of other classes, of training and of the half that may be looked at.

    For a class as a whole, its own training rows that look different are others, too.
    """
    dataset = samples.dataset
    rows = np.union1d(dataset.rows_of(Split.TRAIN), kind.discovery.rows)
    rows = rows[dataset.is_labelled[rows]]
    is_other = ~kind.is_of_class(rows)
    if kind.slice_ is None and kind.training is not None:
        is_other |= np.isin(rows, dataset.rows_of(Split.TRAIN)) & ~np.isin(rows, kind.training)
    return np.asarray(rows[is_other], dtype=np.int64)


MIN_GAIN = 0.05
MAX_LOST = 0.5


@dataclass(frozen=True, kw_only=True, eq=False)
class CollectionNeed:
    """Images that a finding could do with.

    Args:
        kind: what they are to show.
        choice: what the pool has of it.
        n_wanted: how many; None if that cannot be said.
        forecast: what they will bring, None if that cannot be said.
        why_none: why not.
    """

    kind: ImageKind
    choice: PoolChoice
    n_wanted: int | None = None
    forecast: Forecast | None = None
    why_none: str = ""

    @property
    def moves_errors(self) -> bool:
        """Return whether more than half of what is gained on these images is expected to be lost on others."""
        if self.forecast is None:
            return False
        n_kind = len(self.kind.rows)
        n_others = len(self.kind.discovery) - n_kind
        lost = -self.forecast.elsewhere * n_others
        return lost > MAX_LOST * max(self.forecast.gain * n_kind, 0.0)

    @property
    def may_help(self) -> bool:
        """Return whether more images are worth having: a gain is expected that others do not pay for, or nothing is known of it."""
        if self.forecast is None:
            return True
        is_gain = self.forecast.helps or self.forecast.gain >= MIN_GAIN
        return is_gain and not self.moves_errors
