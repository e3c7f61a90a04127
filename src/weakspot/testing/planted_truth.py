"""The slices on which the classifier of a planted world must fail."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from weakspot.core.arrays import BoolArray
from weakspot.core.failures import Side
from weakspot.testing.planted_factors import DrawnRows
from weakspot.testing.planted_problems import PlantedProblem
from weakspot.testing.scenes import FACTOR_NAMES, FACTORS


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
    problem: PlantedProblem, rows: DrawnRows, *, classes: tuple[str, ...], is_multi_label: bool
) -> tuple[TrueSlice, ...]:
    """Return what must be found."""
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


def _has(problem: PlantedProblem, rows: DrawnRows, value: str) -> BoolArray:
    return np.equal(rows.codes[:, FACTOR_NAMES.index(problem.factor)], FACTORS[problem.factor].index(value))


def _failing(problem: PlantedProblem, rows: DrawnRows, classes: tuple[str, ...], *, name: str, value: str) -> TrueSlice:
    words = f"a photo of a {value} {name}" if problem.factor != "background" else f"a photo of a {name} on a {value} background"
    inside = np.logical_and(rows.labels[:, classes.index(name)], _has(problem, rows, value))
    return TrueSlice(class_name=name, side=None, inside=inside, phrase=words, factor=problem.factor, value=value)


def _taken_for(
    problem: PlantedProblem, rows: DrawnRows, classes: tuple[str, ...], found: Sequence[TrueSlice]
) -> tuple[TrueSlice, ...]:
    """Return the samples that lack a label and get it all the same: the other half of each mistake in a multi-label world."""
    if problem.kind == "rare":
        lacks = ~rows.labels[:, classes.index(problem.rival)]
        return (replace(found[0], class_name=problem.rival, side=Side.ABSENT, inside=found[0].inside & lacks),)
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


def _mislabelled(rows: DrawnRows, classes: tuple[str, ...], *, is_multi_label: bool) -> tuple[TrueSlice, ...]:
    found = []
    for code, name in enumerate(classes):
        labelled, real = rows.labels[:, code], rows.truth[:, code]
        words = f"a photo of something that is labelled {name} and is none"
        side = Side.PRESENT if is_multi_label else None
        found.append(TrueSlice(class_name=name, side=side, inside=labelled & ~real, phrase=words))
        if is_multi_label:
            words = f"a photo of a {name} that is not labelled so"
            found.append(TrueSlice(class_name=name, side=Side.ABSENT, inside=real & ~labelled, phrase=words))
    return tuple(found)
