"""How many rows a slice lacks, counted or estimated, and the pool rows that it could do with, in the order in which to take them."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from weakspot.core.arrays import BoolArray, DoubleArray, FloatArray, IntArray
from weakspot.core.dataset import Split
from weakspot.core.evidence import Evidence
from weakspot.core.failures import FailureCriterion, class_problems
from weakspot.core.repairs import GainEstimate, SliceNeed
from weakspot.core.rules import ColumnRule, single_rules
from weakspot.core.samples import SampleSet
from weakspot.core.slices import FailureSlice, matches


@dataclass(frozen=True, kw_only=True, eq=False)
class PoolRows:
    """What the pool holds of a slice.

    Args:
        found: the slice.
        rows: rows of the data set, those to take first at the front.
        is_labelled: which of them are labelled with the class of the slice; the others have no label.
        is_wrong: which of them the classifier gets wrong, as far as that is known.
    """

    found: FailureSlice
    rows: IntArray
    is_labelled: BoolArray
    is_wrong: BoolArray


def pool_rows(
    slices: Sequence[FailureSlice], samples: SampleSet, criterion: FailureCriterion
) -> tuple[PoolRows, ...]:
    """Return for every slice the pool rows that its rule fits: labelled with its class, or without a label.

    Labelled rows come first, because they can be used at once; among these, rows that the classifier gets wrong, then by how little
    probability it gives to the truth, where that is known; then in the order of the table.
    """
    pool = samples.dataset.rows_of(Split.POOL)
    return tuple(_of_slice(found, samples, pool, criterion) for found in slices)


def _of_slice(
    found: FailureSlice, samples: SampleSet, pool: IntArray, criterion: FailureCriterion
) -> PoolRows:
    dataset = samples.dataset
    fits = pool[found.rule.members(samples, pool)]
    of_class = np.isin(fits, found.class_rows(samples.only(fits)))
    rows = fits[of_class | ~dataset.is_labelled[fits]]
    is_labelled = dataset.is_labelled[rows]
    is_wrong, confidence = _judge(found, samples, rows[is_labelled], criterion)
    wrong = np.zeros(len(rows), dtype=np.bool_)
    sure = np.full(len(rows), np.inf)
    wrong[is_labelled], sure[is_labelled] = is_wrong, confidence
    order = np.lexsort((rows, sure, ~wrong, ~is_labelled))
    return PoolRows(
        found=found, rows=rows[order], is_labelled=is_labelled[order], is_wrong=wrong[order]
    )


def _judge(
    found: FailureSlice, samples: SampleSet, rows: IntArray, criterion: FailureCriterion
) -> tuple[BoolArray, FloatArray]:
    """Return which labelled rows the classifier gets wrong, and the probability of their truth; infinite where nothing is known."""
    wrong = np.zeros(len(rows), dtype=np.bool_)
    sure = np.full(len(rows), np.inf, dtype=np.float32)
    if not samples.dataset.has_predictions or not len(rows):
        return wrong, sure
    for problem in class_problems(samples.dataset, rows, criterion):
        if matches(found, problem):
            places = np.searchsorted(rows, problem.rows)
            wrong[places] = problem.failed
            sure[places] = np.nan_to_num(problem.confidence, nan=np.inf)
    return wrong, sure


MIN_KINDS = 4
MIN_EVALUATED = 20
MIN_SPREAD = 4.0
SURE = 1.96
MAX_STEPS = 50
MAX_TIMES = 1000.0
MAX_ABOVE = 2.0
PARTS_OF_GAP = (0.5, 1.0)


KindCounts = tuple[IntArray, IntArray, IntArray]
"""Training rows, evaluation rows and failures among these, of every kind of samples of one class [k]."""


def slice_needs(
    slices: Sequence[FailureSlice],
    evidence: Sequence[Evidence],
    samples: SampleSet,
    criterion: FailureCriterion,
    pool: Sequence[PoolRows],
    *,
    evaluated: IntArray,
    gain: float | None = None,
) -> tuple[SliceNeed, ...]:
    """Return what every slice lacks.

    Args:
        slices: confirmed ones.
        evidence: what was measured of them.
        samples: all samples.
        criterion: what counts as a failure.
        pool: what the pool holds of each slice.
        evaluated: rows that failures were measured on.
        gain: by how much the failure rate of every slice is to fall; None: by half and all of its gap.
    """
    known = {entry.slice_id: entry for entry in evidence}
    return tuple(
        _need(found, known[found.slice_id], samples, criterion, own, evaluated, gain)
        for found, own in zip(slices, pool, strict=True)
        if found.slice_id in known
    )


def _need(
    found: FailureSlice,
    entry: Evidence,
    samples: SampleSet,
    criterion: FailureCriterion,
    pool: PoolRows,
    evaluated: IntArray,
    gain: float | None,
) -> SliceNeed:
    training = samples.only(samples.dataset.rows_of(Split.TRAIN))
    own = found.class_rows(training)
    n_members = int(found.rule.members(samples, own).sum())
    need = SliceNeed(
        slice_id=found.slice_id,
        title=found.title,
        rate_inside=entry.rate_inside,
        rate_outside=entry.rate_outside,
        n_inside=entry.n_inside,
        n_outside=entry.n_outside,
        n_evaluation=entry.measured_on.n_samples,
        n_training=n_members if len(training) else None,
        n_class_training=len(own),
        n_pool=len(pool.rows),
        n_pool_labelled=int(pool.is_labelled.sum()),
        n_to_match=rows_to_match(n_members, len(own), entry.n_inside, entry.n_outside)
        if len(training)
        else None,
    )
    if not len(training):
        return need.model_copy(update={"why_no_estimate": "there are no training rows to count"})
    counts = kind_counts(found, samples, criterion, evaluated)
    if isinstance(counts, str):
        return need.model_copy(update={"why_no_estimate": counts})
    return _estimated(need, counts, gain)


def rows_to_match(n_members: int, n_class: int, n_inside: int, n_outside: int) -> int:
    """Return how many members to add so that they have the share among training rows that they have among evaluation rows.

    >>> rows_to_match(10, 910, 200, 800), rows_to_match(300, 1000, 200, 800)
    (215, 0)
    """
    if not n_outside:
        return 0
    wanted = (n_class - n_members) * n_inside / n_outside
    return max(0, int(np.ceil(round(wanted - n_members, 9))))


def kind_counts(
    found: FailureSlice, samples: SampleSet, criterion: FailureCriterion, evaluated: IntArray
) -> KindCounts | str:
    """Return the other kinds of samples of a slice's class, by values of the columns that its rule reads; or why there are none."""
    rules = single_rules(found.rule)
    columns = sorted(
        {rule.column for rule in rules if isinstance(rule, ColumnRule) and rule.values}
    )
    if not columns or any(not isinstance(rule, ColumnRule) for rule in rules):
        return "its rule does not divide the class into kinds to compare"
    problem = next(
        (
            one
            for one in class_problems(samples.dataset, evaluated, criterion)
            if matches(found, one)
        ),
        None,
    )
    if problem is None:
        return "no evaluation row belongs to its class"
    training = found.class_rows(samples.only(samples.dataset.rows_of(Split.TRAIN)))
    training = training[~found.rule.members(samples, training)]
    outside = ~found.rule.members(samples, problem.rows)
    kinds = _codes(samples, np.concatenate([training, problem.rows[outside]]), columns)
    n_kinds = int(kinds.max(initial=-1)) + 1
    here, there = kinds[len(training) :], kinds[: len(training)]
    failed = here[problem.failed[outside]]
    training, evaluated, failed = (
        np.bincount(codes, minlength=n_kinds) for codes in (there, here, failed)
    )
    return training, evaluated, failed


def _codes(samples: SampleSet, rows: IntArray, columns: Sequence[str]) -> IntArray:
    """Return the number of every row's combination of values."""
    found = np.zeros(len(rows), dtype=np.int64)
    for column in columns:
        coded = samples.dataset.metadata(column).take(rows).combine_chunks().dictionary_encode()
        values = np.asarray(coded.indices.fill_null(len(coded.dictionary)), dtype=np.int64)
        found = found * (len(coded.dictionary) + 1) + values
    return np.unique(found, return_inverse=True)[1].reshape(-1)


def _estimated(need: SliceNeed, counts: KindCounts, gain: float | None) -> SliceNeed:
    curve = learning_curve(counts)
    why = curve if isinstance(curve, str) else _departure(need, curve)
    if isinstance(curve, str) or why or not need.n_training:
        return need.model_copy(update={"why_no_estimate": why})
    gap = need.rate_inside - need.rate_outside
    wanted = [part * gap for part in PARTS_OF_GAP] if gain is None else [gain]
    estimates = tuple(
        GainEstimate(gain=one, n_rows=n_rows)
        for one in wanted
        if (n_rows := rows_for(one, need.rate_inside, need.n_training, curve.exponent)) is not None
    )
    why = "" if estimates else "the gain is beyond what the curve can be drawn out to"
    return need.model_copy(
        update={
            "exponent": curve.exponent,
            "n_kinds": curve.n_kinds,
            "estimates": estimates,
            "why_no_estimate": why,
        }
    )


def _departure(need: SliceNeed, curve: "LearningCurve") -> str:
    """Return why a slice does not lie on the curve of the other kinds; empty if it does."""
    if not need.n_training:
        return "no training row is of its kind, so there is nothing to start from"
    if need.rate_inside > MAX_ABOVE * curve.rate_at(need.n_training):
        return "it fails far more often than its number of training rows explains, compared with other kinds of its class"
    return ""


def rows_for(gain: float, rate: float, n_rows: int, exponent: float) -> int | None:
    """Return how many rows to add so that a rate falls by `gain` along a power of the number of rows; None beyond a thousandfold.

    >>> rows_for(0.2, 0.4, 50, 0.5), rows_for(0.4, 0.4, 50, 0.5)
    (150, None)
    """
    if not 0.0 < gain < rate:
        return None
    times = (rate / (rate - gain)) ** (1.0 / exponent)
    return int(np.ceil(round(n_rows * (times - 1.0), 6))) if times <= MAX_TIMES else None


@dataclass(frozen=True, kw_only=True)
class LearningCurve:
    """Failure rates across kinds of a class: `level * n_rows ** -exponent`.

    Args:
        exponent: positive.
        level: the rate at one training row.
        n_kinds: kinds that it goes through.
    """

    exponent: float
    level: float
    n_kinds: int

    def rate_at(self, n_rows: int) -> float:
        return min(1.0, float(self.level * n_rows**-self.exponent))


def learning_curve(counts: KindCounts) -> LearningCurve | str:
    """Return how failures fall with the number of training rows across kinds; or why that cannot be said.

    A Poisson regression of failures on the logarithm of the number of training rows; its error is widened by how much kinds differ beyond
    chance.
    """
    n_training, n_evaluated, _ = counts
    usable = (n_training > 0) & (n_evaluated >= MIN_EVALUATED)
    n_kinds = int(usable.sum())
    if n_kinds < MIN_KINDS:
        return f"only {n_kinds} other kinds of its class have enough rows to compare, at least {MIN_KINDS} are needed"
    training, evaluated, failed = (one[usable].astype(np.float64) for one in counts)
    if training.max() < MIN_SPREAD * training.min():
        return "other kinds of its class have nearly the same number of training rows, so these say nothing of what more rows do"
    fitted = _fit(np.log(training), evaluated, failed)
    if fitted is None:
        return "other kinds of its class do not fail by any power of the number of training rows"
    level, slope, error = fitted
    if -slope - SURE * error <= 0.0:
        return "other kinds of its class with more training rows do not clearly fail less often"
    return LearningCurve(exponent=-slope, level=level, n_kinds=n_kinds)


def _fit(
    logs: DoubleArray, evaluated: DoubleArray, failed: DoubleArray
) -> tuple[float, float, float] | None:
    """Return the rate at logs of 0, slope and standard error of log(failure rate) on logs; None if it does not settle."""
    if not failed.sum():
        return None
    design = np.column_stack([np.ones(len(logs)), logs - logs.mean()])
    weights = np.array([np.log(failed.sum() / evaluated.sum()), 0.0])
    for _ in range(MAX_STEPS):
        expected = evaluated * np.exp(np.clip(design @ weights, -50.0, 50.0))
        information = design.T @ (design * expected[:, None])
        try:
            step = np.linalg.solve(information, design.T @ (failed - expected))
        except np.linalg.LinAlgError:
            return None
        weights = weights + np.clip(step, -2.0, 2.0)
        if np.abs(step).max() < 1e-8:  # noqa: PLR2004 - settled
            break
    else:
        return None
    expected = evaluated * np.exp(design @ weights)
    spread = float(np.sum((failed - expected) ** 2 / expected)) / max(len(logs) - 2, 1)
    error = float(np.sqrt(np.linalg.inv(information)[1, 1] * max(1.0, spread)))
    return float(np.exp(weights[0] - weights[1] * logs.mean())), float(weights[1]), error
