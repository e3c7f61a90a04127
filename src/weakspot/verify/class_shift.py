"""Whether a class looks unlike its training images, and whether it fails more and more with time."""

import re
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pat

from weakspot.core.arrays import BoolArray, DoubleArray, FloatArray, IntArray, generator, unit_rows
from weakspot.core.dataset import Dataset, Task
from weakspot.core.evidence import ClassFinding, ClassFindingKind, Interval, Verdict
from weakspot.core.samples import SampleSet
from weakspot.core.statistics import RankSum, wilson_interval
from weakspot.verify.classes import ClassMaterial, drift_sentence, shift_sentence

N_FOLDS = 5
MAX_OF_A_SIDE = 400
MIN_OF_A_SIDE = 10
PENALTY = 0.5
MIN_AUC = 0.65
NORMAL_95 = 1.959964


@dataclass(frozen=True, kw_only=True, eq=False)
class TwoSides:
    """Images of one class, one of each group: those that are evaluated and those of training.

    Args:
        rows: rows of the data set [n].
        is_here: which of them are evaluated [n].
        embeddings: unit vectors [n, d].
    """

    rows: IntArray
    is_here: BoolArray
    embeddings: FloatArray


def ask_shift(
    samples: SampleSet, space: str, evaluated: IntArray, training: IntArray
) -> list[ClassFinding]:
    """Return for every class with enough images whether evaluation looks unlike training, tested but not yet judged.

    Predictions are not looked at.

    Args:
        samples: all samples, with embeddings.
        space: which embeddings.
        evaluated: labelled rows that failures are looked for in.
        training: labelled rows that the classifier was trained on.
    """
    here, there = (_by_class(samples.dataset, rows) for rows in (evaluated, training))
    found = []
    for code in sorted(set(here) & set(there)):
        sides = two_sides(samples, space, here[code], there[code])
        if sides is None:
            continue
        test, (low, high) = compare_sides(sides)
        name = samples.dataset.class_names[code]
        found.append(
            ClassFinding(
                kind=ClassFindingKind.SHIFT,
                class_name=name,
                verdict=Verdict.NOT_CONFIRMED,
                sentence=shift_sentence(name, test.auc),
                n_samples=int(sides.is_here.sum()),
                rate=test.auc,
                interval=Interval(low=low, high=high),
                reference=0.5,
                p_value=test.p_value,
                n_training=len(there[code]),
            )
        )
    return found


def _by_class(dataset: Dataset, rows: IntArray) -> Mapping[int, IntArray]:
    """Return the rows of every class that has any; in multi-label tasks those that have the label."""
    if dataset.task is Task.SINGLE_LABEL:
        codes = dataset.labels[rows]
        order = np.argsort(codes, kind="stable")
        names, starts = np.unique(codes[order], return_index=True)
        parts = np.split(rows[order], starts[1:])
        return dict(zip(names.tolist(), parts, strict=True)) if len(rows) else {}
    matrix = dataset.label_matrix[rows]
    return {
        code: rows[matrix[:, code]] for code in range(dataset.n_classes) if matrix[:, code].any()
    }


def two_sides(
    samples: SampleSet,
    space: str,
    here: IntArray,
    there: IntArray,
    *,
    least: int = MIN_OF_A_SIDE,
) -> TwoSides | None:
    """Return one image of each group that lies wholly on one side, at most so many of each; None if a side has fewer than `least`.

    Groups with images on both sides are a leak between splits and say nothing about a shift.
    """
    dataset = samples.dataset
    shared = np.intersect1d(dataset.groups[here], dataset.groups[there])
    parts = []
    for rows, side in ((here, "here"), (there, "there")):
        own = rows[~np.isin(dataset.groups[rows], shared)]
        order = generator(0, "shift", side).permutation(len(own))
        _, first = np.unique(dataset.groups[own[order]], return_index=True)
        chosen = own[order[np.sort(first)]][: 2 * MAX_OF_A_SIDE]
        chosen = chosen[samples.has_embeddings(space, chosen)][:MAX_OF_A_SIDE]
        parts.append(chosen)
    if min(map(len, parts)) < least:
        return None
    rows = np.concatenate(parts)
    return TwoSides(
        rows=rows,
        is_here=np.arange(len(rows)) < len(parts[0]),
        embeddings=unit_rows(samples.embeddings(space, rows)),
    )


def compare_sides(sides: TwoSides) -> tuple[RankSum, tuple[float, float]]:
    """Return how well a classifier that saw some images tells others apart, and the interval of its AUC.

    A shrunken linear discriminant is fitted on the first fold and ranks the second, then on the first two and ranks the third, and
    so on. Given the folds before it, sides of a fold are exchangeable if nothing differs, whatever was fitted: the sums of ranks of
    all folds add up as those of independent Wilcoxon tests do. Nearly all images answer, once each, and none is ranked by a fit that
    saw its side.
    """
    folds = _folds(sides.is_here)
    found = RankSum()
    for fold in range(1, N_FOLDS):
        seen, asked = folds < fold, folds == fold
        direction = discriminant(sides.embeddings[seen], sides.is_here[seen])
        found += RankSum.of(sides.embeddings[asked] @ direction, sides.is_here[asked])
    counts = int((sides.is_here & (folds > 0)).sum()), int((~sides.is_here & (folds > 0)).sum())
    return found, _auc_interval(found.auc, *counts)


def _folds(is_here: BoolArray) -> IntArray:
    """Return the fold of every image [n]; each has a part of both sides. Images come in an order drawn by chance."""
    folds = np.empty(len(is_here), dtype=np.int64)
    for side in (True, False):
        own = np.flatnonzero(is_here == side)
        folds[own] = np.arange(len(own)) * N_FOLDS // len(own)
    return folds


def discriminant(embeddings: FloatArray, is_here: BoolArray) -> DoubleArray:
    """Return the direction [d] along which one side is told from the other: ridge regression, both sides weighing the same."""
    values = np.asarray(embeddings, dtype=np.float64)
    centred = values - (values[is_here].mean(axis=0) + values[~is_here].mean(axis=0)) / 2
    targets = np.where(is_here, 1.0 / is_here.sum(), -1.0 / (~is_here).sum()) * len(is_here) / 2
    penalty = PENALTY * np.square(centred).sum() / len(centred) + 1e-12
    n_images, n_dimensions = centred.shape
    # The same direction either way; the smaller system is solved.
    if n_dimensions < n_images:
        products = centred.T @ centred + penalty * np.eye(n_dimensions)
        return np.asarray(np.linalg.solve(products, centred.T @ targets))
    products = centred @ centred.T + penalty * np.eye(n_images)
    return np.asarray(centred.T @ np.linalg.solve(products, targets))


def _auc_interval(auc: float, n_here: int, n_there: int) -> tuple[float, float]:
    """Return the interval of an AUC (Hanley and McNeil)."""
    first, second = auc / (2 - auc), 2 * auc**2 / (1 + auc)
    variance = (
        auc * (1 - auc) + (n_here - 1) * (first - auc**2) + (n_there - 1) * (second - auc**2)
    ) / (n_here * n_there)
    reach = NORMAL_95 * float(np.sqrt(max(variance, 0.0)))
    return max(0.0, auc - reach), min(1.0, auc + reach)


TIME_NAME = re.compile(
    r"(^|[_\s-])(time|date|datetime|timestamp|year|taken|captured|recorded)($|[_\s-])"
)
DATE = r"^\d{4}([-/:.]\d{1,2}){0,2}([T ].*)?$"
MAX_COLUMNS = 2
MIN_SAMPLES = 20
MIN_VALUES = 3
MIN_OF_AN_OUTCOME = 5
HALF = 0.5
LATER, EARLIER = "later", "earlier"


def time_columns(dataset: Dataset) -> dict[str, tuple[DoubleArray, list[object]]]:
    """Return the columns that tell a time by their name and values: places in time [n], NaN where unknown, and values."""
    found: dict[str, tuple[DoubleArray, list[object]]] = {}
    for name in sorted(dataset.metadata_names):
        if len(found) < MAX_COLUMNS and TIME_NAME.search(name.lower()):
            column = dataset.metadata(name).combine_chunks()
            places = _places(column)
            if places is not None and len(np.unique(places[np.isfinite(places)])) >= MIN_VALUES:
                found[name] = places, column.to_pylist()
    return found


def _places(column: pa.Array) -> DoubleArray | None:
    kind = column.type
    if pat.is_integer(kind) or pat.is_floating(kind):
        return np.asarray(pc.fill_null(pc.cast(column, "double"), float("nan")))
    if pat.is_timestamp(kind) or pat.is_date(kind):
        numbers = pc.cast(pc.cast(column, pa.timestamp("us")), "int64")
        return np.asarray(pc.fill_null(pc.cast(numbers, "double", safe=False), float("nan")))
    if not pat.is_string(kind) and not pat.is_large_string(kind):
        return None
    known = pc.drop_null(column)
    if not len(known) or not pc.all(pc.match_substring_regex(known, DATE)).as_py():
        return None
    # Dates from the year on are in order as texts.
    ranks = np.asarray(pc.rank(column, tiebreaker="dense"), dtype=np.float64)
    ranks[np.asarray(pc.is_null(column))] = np.nan
    return ranks


def ask_drift(material: ClassMaterial) -> list[ClassFinding]:
    """Return for every class and column of times whether failures go with time, tested but not yet judged.

    The ranks of the failures' times are compared with those of the others, two-sided (Wilcoxon's test with ties). One sample of
    each group answers.
    """
    columns = time_columns(material.dataset)
    if not columns:
        return []
    single = material.one_of_each_group()
    return [
        finding
        for name, (places, values) in columns.items()
        for code in np.flatnonzero(single.sizes >= MIN_SAMPLES).tolist()
        if (finding := _finding(single, code, name, places, values)) is not None
    ]


def _finding(
    material: ClassMaterial, code: int, column: str, places: DoubleArray, values: list[object]
) -> ClassFinding | None:
    rows, failed = material.rows[material.codes == code], material.failed[material.codes == code]
    known = np.isfinite(places[rows])
    rows, failed = rows[known], failed[known]
    own = places[rows]
    if len(rows) < MIN_SAMPLES or len(np.unique(own)) < MIN_VALUES:
        return None
    low, high = np.quantile(own, [1 / 3, 2 / 3], method="nearest")
    early, late = failed[own <= low], failed[own >= high]
    p_value, is_later = rank_test(own, failed)
    worst = late if is_later else early
    bound = rows[np.flatnonzero(own == (high if is_later else low))[0]]
    rates = float(early.mean()), float(late.mean())
    n_failed = int(worst.sum())
    ends = wilson_interval(n_failed, len(worst))
    return ClassFinding(
        kind=ClassFindingKind.DRIFT,
        class_name=material.name(code),
        verdict=Verdict.NOT_CONFIRMED,
        sentence=drift_sentence(
            material.name(code), column, rates, since=str(values[bound]), is_later=is_later
        ),
        n_samples=len(worst),
        n_failed=n_failed,
        rate=n_failed / len(worst),
        interval=Interval(low=ends[0], high=ends[1]),
        reference=rates[0] if is_later else rates[1],
        p_value=p_value,
        column=column,
        value=LATER if is_later else EARLIER,
        question=material.question(ClassFindingKind.DRIFT, material.name(code), column),
    )


def rank_test(values: DoubleArray, failed: BoolArray) -> tuple[float, bool]:
    """Return the two-sided p-value that failures have the same values as the others, and whether theirs are larger.

    >>> p_value, is_larger = rank_test(np.arange(20.0), np.arange(20) >= 14)
    >>> round(p_value, 4), is_larger
    (0.0006, True)
    """
    found = RankSum.of(values, failed)
    is_larger = found.auc > HALF
    n_failed = int(failed.sum())
    if min(n_failed, len(failed) - n_failed) < MIN_OF_AN_OUTCOME:
        return 1.0, is_larger
    return min(1.0, 2.0 * (found if is_larger else found.reversed).p_value), is_larger
