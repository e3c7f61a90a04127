"""Whether a class fails more often than the other classes."""

import numpy as np

from weakspot.core.arrays import BoolArray, DoubleArray, IntArray
from weakspot.core.class_findings import ClassFinding, ClassFindingKind
from weakspot.core.evidence import Interval, Verdict
from weakspot.core.group_tests import MOST_GROUPS_DRAWN, GroupTest
from weakspot.core.statistics import fisher_p
from weakspot.verify.classes.material import ClassMaterial
from weakspot.verify.classes.wording import whole_sentence

FEW_CLASSES = 20
MOSTLY = 0.5


def ask_whole(material: ClassMaterial, *, least: int) -> list[ClassFinding]:
    """Return for every class with enough samples whether it fails more often than the others, tested but not yet judged.

    Which classes are asked about follows from labels alone, so all samples may answer. Under the null hypothesis failing does not
    go with the class; groups count once (`GroupTest`). A multi-label sample has several labels: those with the label are compared
    with the others, of which one label each, drawn by chance, answers.

    Args:
        material: samples of all classes.
        least: fewest samples of a class, and of the others.
    """
    asked = [
        code
        for code in np.flatnonzero(material.sizes >= least).tolist()
        if len(material) - material.sizes[code] >= least
    ]
    return [
        _finding(material, code, p_value)
        for code, p_value in zip(asked, _p_values(material, asked), strict=True)
    ]


def _finding(material: ClassMaterial, code: int, p_value: float) -> ClassFinding:
    own = material.codes == code
    n_samples, n_failed = int(material.sizes[code]), int(material.failures[code])
    n_others, failed_others = (
        len(material) - n_samples,
        int(material.failed.sum()) - n_failed,
    )
    low, high = material.interval(n_failed, own)
    other, n_other = _mostly(material, own)
    return ClassFinding(
        kind=ClassFindingKind.WHOLE,
        class_name=material.name(code),
        other_class=other,
        verdict=Verdict.NOT_CONFIRMED,
        sentence=whole_sentence(
            material.name(code),
            (n_failed, n_samples, failed_others, n_others),
            other=other,
            n_other=n_other,
        ),
        n_samples=n_samples,
        n_failed=n_failed,
        rate=n_failed / n_samples,
        interval=Interval(low=low, high=high),
        reference=failed_others / n_others,
        p_value=p_value,
        question=material.question(ClassFindingKind.WHOLE, material.name(code)),
    )


def _mostly(material: ClassMaterial, own: BoolArray) -> tuple[str, int]:
    """Return the class that most failures of a class go to and how many do, none if there is no such class."""
    if material.predicted is None:
        return "", 0
    wrong = material.predicted[own & material.failed & (material.predicted != material.codes)]
    if not len(wrong):
        return "", 0
    counts = np.bincount(wrong)
    best = int(np.argmax(counts))
    if counts[best] <= MOSTLY * int(material.failed[own].sum()):
        return "", 0
    return material.name(best), int(counts[best])


def _p_values(material: ClassMaterial, asked: list[int]) -> list[float]:
    if material.predicted is None:
        return [_among_labels(material, code) for code in asked]
    if material.groups is None:
        return _fisher(material, asked)
    n_groups = int(material.groups.max()) + 1
    if n_groups > MOST_GROUPS_DRAWN and len(asked) > FEW_CLASSES:
        return _fisher(material.one_of_each_group(), asked)
    test = GroupTest(material.failed, material.groups)
    return test.p_values([material.codes == code for code in asked])


def _fisher(material: ClassMaterial, asked: list[int]) -> list[float]:
    n_all, n_failed = len(material), int(material.failed.sum())
    counts: list[tuple[int, int]] = [
        (int(material.failures[code]), int(material.sizes[code])) for code in asked
    ]
    return [fisher_p(failed, size, n_failed - failed, n_all - size) for failed, size in counts]


def _among_labels(material: ClassMaterial, code: int) -> float:
    """Return the p-value of a label: every sample is there once, with this label if it has it."""
    chosen = _one_label_each(material.rows, material.codes == code)
    part = material.only(chosen)
    return GroupTest(part.failed, part.groups).p_value(part.codes == code)


def _one_label_each(rows: IntArray, is_own: BoolArray) -> IntArray:
    order = np.random.default_rng(0).permutation(len(rows))
    wanted: DoubleArray = np.empty(len(rows))
    wanted[order] = np.arange(len(rows))
    wanted[is_own] = -1
    ranked = np.lexsort((wanted, rows))
    _, first = np.unique(rows[ranked], return_index=True)
    return np.sort(ranked[first])
