"""Whether a class fails more and more with time. Single values of other columns are slices of their own."""

import re

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pat

from weakspot.core.arrays import BoolArray, DoubleArray
from weakspot.core.class_findings import ClassFinding, ClassFindingKind
from weakspot.core.dataset import Dataset
from weakspot.core.evidence import Interval, Verdict
from weakspot.core.statistics import wilson_interval
from weakspot.verify.classes.material import ClassMaterial
from weakspot.verify.classes.ranks import RankSum
from weakspot.verify.classes.wording import drift_sentence

TIME_NAME = re.compile(
    r"(^|[_\s-])(time|date|datetime|timestamp|year|taken|captured|recorded)($|[_\s-])"
)
DATE = r"^\d{4}([-/:.]\d{1,2}){0,2}([T ].*)?$"
MOST_COLUMNS = 2
FEWEST_SAMPLES = 20
FEWEST_VALUES = 3
FEWEST_OF_A_SIDE = 5
HALF = 0.5
LATER, EARLIER = "later", "earlier"


def time_columns(dataset: Dataset) -> dict[str, tuple[DoubleArray, list[object]]]:
    """Return the columns that tell a time by their name and values: places in time [n], NaN where unknown, and values."""
    found: dict[str, tuple[DoubleArray, list[object]]] = {}
    for name in sorted(dataset.metadata_names):
        if len(found) < MOST_COLUMNS and TIME_NAME.search(name.lower()):
            column = dataset.metadata(name).combine_chunks()
            places = _places(column)
            if places is not None and len(np.unique(places[np.isfinite(places)])) >= FEWEST_VALUES:
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
        for code in np.flatnonzero(single.sizes >= FEWEST_SAMPLES).tolist()
        if (finding := _finding(single, code, name, places, values)) is not None
    ]


def _finding(
    material: ClassMaterial, code: int, column: str, places: DoubleArray, values: list[object]
) -> ClassFinding | None:
    rows, failed = material.rows[material.codes == code], material.failed[material.codes == code]
    known = np.isfinite(places[rows])
    rows, failed = rows[known], failed[known]
    own = places[rows]
    if len(rows) < FEWEST_SAMPLES or len(np.unique(own)) < FEWEST_VALUES:
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
    if min(n_failed, len(failed) - n_failed) < FEWEST_OF_A_SIDE:
        return 1.0, is_larger
    return min(1.0, 2.0 * (found if is_larger else found.reversed).p_value), is_larger
