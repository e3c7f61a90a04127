"""The slices on which the classifier of a planted world must fail.

The data set of a planted world, built column by column.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from weakspot.core.arrays import AnyArray, BoolArray
from weakspot.core.dataset import METADATA_PREFIX, Dataset, Task
from weakspot.core.failures import Side
from weakspot.testing.planted_problems import GeneratedRows, PlantedProblem
from weakspot.testing.scenes import FACTOR_NAMES, FACTORS, KINDS


def world_table(
    rows: GeneratedRows, *, classes: tuple[str, ...], is_multi_label: bool, seed: int
) -> Dataset:
    """Return drawn rows as a data set without predictions."""
    n_rows = len(rows.codes)
    prefix = hashlib.sha256(f"planted {seed} {classes} {is_multi_label}".encode()).hexdigest()[:16]
    ids = pa.array([f"{prefix}{row:016x}" for row in range(n_rows)], pa.string())
    columns: dict[str, pa.Array] = {
        "sample_id": ids,
        "content_hash": ids,
        "location": pa.nulls(n_rows, pa.string()),
        "key": ids,
        "split": pa.array(rows.splits, pa.int8()),
    }
    if is_multi_label:
        ends = np.concatenate([[0], np.cumsum(rows.labels.sum(axis=1))])
        columns["labels"] = pa.ListArray.from_arrays(
            pa.array(ends, pa.int32()), pa.array(np.nonzero(rows.labels)[1], pa.int32())
        )
    else:
        columns["label"] = pa.array(rows.labels.argmax(axis=1), pa.int32())
    columns["width"] = columns["height"] = pa.array(np.zeros(n_rows, dtype=np.int32))
    columns[METADATA_PREFIX + "kind"] = _words(rows.codes[:, 0], _mask_names())
    for place, name in enumerate(FACTOR_NAMES[1:], start=1):
        columns[METADATA_PREFIX + name] = _words(rows.codes[:, place], FACTORS[name])
    columns[METADATA_PREFIX + "label_is_wrong"] = pa.array((rows.labels != rows.truth).any(axis=1))
    task = Task.MULTI_LABEL if is_multi_label else Task.SINGLE_LABEL
    return Dataset(class_names=classes, task=task, table=pa.table(columns))


def _words(codes: AnyArray, names: tuple[str, ...]) -> pa.Array:
    return pa.DictionaryArray.from_arrays(pa.array(codes.astype(np.int32)), pa.array(names)).cast(
        pa.string()
    )


def _mask_names() -> tuple[str, ...]:
    return tuple(
        "+".join(kind for place, kind in enumerate(KINDS) if mask >> place & 1)
        for mask in range(1 << len(KINDS))
    )


@dataclass(frozen=True, kw_only=True, eq=False)
class TrueSlice:
    """A planted slice.

    Args:
        class_name: the class whose samples fail.
        side: for multi-label worlds, whether members have or lack the label.
        inside: which rows of the world are members [n]; all of them are labelled (or lack) the class.
        phrase: the slice in words.
        factor: what sets it apart, or None when it is about wrong labels.
        value: the value that members have.
    """

    class_name: str
    side: Side | None
    inside: BoolArray
    phrase: str
    factor: str | None = None
    value: str | None = None


def true_slices(
    problem: PlantedProblem, rows: GeneratedRows, *, classes: tuple[str, ...], is_multi_label: bool
) -> tuple[TrueSlice, ...]:
    if problem.kind == "none" or (problem.strength == 0.0 and problem.kind != "rare"):
        return ()
    if problem.kind == "label-noise":
        return _mislabelled(rows, classes, is_multi_label=is_multi_label)
    crossed = [(problem.class_name, problem.value)]
    if problem.kind == "spurious":
        crossed.append((problem.rival, problem.usual_value))
    found = [_failing(problem, rows, classes, name=name, value=value) for name, value in crossed]
    if not is_multi_label:
        return tuple(found)
    present = [replace(item, side=Side.PRESENT) for item in found]
    return (*present, *_taken_for(problem, rows, classes, found))


def _has(problem: PlantedProblem, rows: GeneratedRows, value: str) -> BoolArray:
    return np.equal(
        rows.codes[:, FACTOR_NAMES.index(problem.factor)], FACTORS[problem.factor].index(value)
    )


def _failing(
    problem: PlantedProblem, rows: GeneratedRows, classes: tuple[str, ...], *, name: str, value: str
) -> TrueSlice:
    words = (
        f"a photo of a {value} {name}"
        if problem.factor != "background"
        else f"a photo of a {name} on a {value} background"
    )
    inside = np.logical_and(rows.labels[:, classes.index(name)], _has(problem, rows, value))
    return TrueSlice(
        class_name=name, side=None, inside=inside, phrase=words, factor=problem.factor, value=value
    )


def _taken_for(
    problem: PlantedProblem,
    rows: GeneratedRows,
    classes: tuple[str, ...],
    found: Sequence[TrueSlice],
) -> tuple[TrueSlice, ...]:
    """Return the samples that lack a label and get it all the same: the other half of each mistake in a multi-label world."""
    if problem.kind == "rare":
        lacks = ~rows.labels[:, classes.index(problem.rival)]
        return (
            replace(
                found[0], class_name=problem.rival, side=Side.ABSENT, inside=found[0].inside & lacks
            ),
        )
    cues = ((problem.class_name, problem.usual_value), (problem.rival, problem.value))
    return tuple(
        TrueSlice(
            class_name=name,
            side=Side.ABSENT,
            inside=_has(problem, rows, value) & ~rows.labels[:, classes.index(name)],
            phrase=f"a photo of something {value}",
            factor=problem.factor,
            value=value,
        )
        for name, value in cues
    )


def _mislabelled(
    rows: GeneratedRows, classes: tuple[str, ...], *, is_multi_label: bool
) -> tuple[TrueSlice, ...]:
    found = []
    for code, name in enumerate(classes):
        labelled, real = rows.labels[:, code], rows.truth[:, code]
        words = f"a photo of something that is labelled {name} and is none"
        side = Side.PRESENT if is_multi_label else None
        found.append(TrueSlice(class_name=name, side=side, inside=labelled & ~real, phrase=words))
        if is_multi_label:
            words = f"a photo of a {name} that is not labelled so"
            found.append(
                TrueSlice(class_name=name, side=Side.ABSENT, inside=real & ~labelled, phrase=words)
            )
    return tuple(found)
