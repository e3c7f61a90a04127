"""Which class a class is taken for, more often than wrong answers are spread anyway."""

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from weakspot.core.arrays import IntArray
from weakspot.core.class_findings import ClassFinding, ClassFindingKind
from weakspot.core.evidence import Interval, Verdict
from weakspot.core.group_tests import MOST_GROUPS_DRAWN, GroupTest
from weakspot.core.statistics import fisher_p
from weakspot.verify.classes.material import ClassMaterial
from weakspot.verify.classes.wording import confused_sentence

Table: TypeAlias = tuple[int, int, int, int]
FEWEST_TAKEN = 3
FEWEST_CLASSES = 3
BEST_TRIED = 3
FEW_CLASSES = 20
WORTH_DRAWING = 0.05


def ask_confused(material: ClassMaterial, *, least: int) -> list[ClassFinding]:
    """Return for every class with enough samples the class that it is most clearly taken for, tested but not yet judged.

    Under the null hypothesis the wrong answers that a class gets are spread as those of the other classes are, or as the other
    classes' sizes: a class that is large, or that everything is taken for, gets more of them. It has to be more than both, so the
    larger p-value counts. One question a class is asked ("is it taken for any class more often than that?"), so a thousand classes
    are a thousand questions; its p-value is that of the best of all possible wrong classes, times their number. The reverse
    direction is the other class's own question.

    Args:
        material: samples of all classes; nothing is asked in multi-label tasks and of fewer than three classes.
        least: fewest samples of a class.
    """
    if material.predicted is None or np.count_nonzero(material.sizes) < FEWEST_CLASSES:
        return []
    asked = np.flatnonzero(material.sizes >= least).tolist()
    n_groups = 0 if material.groups is None else int(material.groups.max()) + 1
    is_large = n_groups > MOST_GROUPS_DRAWN and len(asked) > FEW_CLASSES
    tested = Answers(material.one_of_each_group() if is_large else material, material.predicted)
    told = Answers(material, material.predicted)
    return [_finding(material, code, tested.best(code), told) for code in asked]


@dataclass(frozen=True)
class Pair:
    """A class that another is taken for.

    Args:
        other: the class; -1 if no answer is wrong.
        share: its usual share, of the wrong answers that other classes get or of their samples, whichever is larger.
        p_value: that the share of wrong answers is no larger, times the number of classes that could be answered.
    """

    other: int
    share: float = 0.0
    p_value: float = 1.0


class Answers:
    """What the samples of every class were taken for."""

    def __init__(self, material: ClassMaterial, predicted: IntArray) -> None:
        self._material = material
        self._n_classes = material.dataset.n_classes
        self._predicted = predicted if material.predicted is None else material.predicted
        known = np.flatnonzero(self._predicted >= 0)
        wrong = known[self._predicted[known] != material.codes[known]]
        self._all_wrong = np.bincount(self._predicted[wrong], minlength=self._n_classes)
        self._order = known[np.argsort(material.codes[known], kind="stable")]
        self._starts = np.searchsorted(
            material.codes[self._order], np.arange(self._n_classes + 1), side="left"
        )

    def of(self, code: int) -> IntArray:
        """Return how many samples of a class got every answer [c]."""
        part = self._order[self._starts[code] : self._starts[code + 1]]
        return np.bincount(self._predicted[part], minlength=self._n_classes)

    def wrong(self, code: int) -> IntArray:
        """Return how many samples of a class got every wrong answer [c]."""
        counts = self.of(code)
        counts[code] = 0
        return counts

    def best(self, code: int) -> Pair:
        """Return the wrong answer that stands out most."""
        taken = self.wrong(code)
        tried = np.flatnonzero(taken >= min(FEWEST_TAKEN, max(1, taken.max()))).tolist()
        if not tried:
            return Pair(-1)
        tables = {other: self._tables(code, other, taken) for other in tried}
        p_values = {
            other: max(fisher_p(*wrong), fisher_p(*sizes))
            for other, (wrong, sizes) in tables.items()
        }
        if self._material.groups is not None:
            first = sorted(p_values, key=lambda other: (p_values[other], other))[:BEST_TRIED]
            p_values = {other: self._grouped(code, other, p_values[other]) for other in first}
        best = min(p_values, key=lambda other: (p_values[other], -taken[other], other))
        p_value = min(1.0, p_values[best] * (self._n_classes - 1))
        shares = [there / max(n_there, 1) for _, _, there, n_there in tables[best]]
        return Pair(
            best, share=max(shares), p_value=p_value if taken[best] >= FEWEST_TAKEN else 1.0
        )

    def _tables(self, code: int, other: int, taken: IntArray) -> tuple[Table, Table]:
        """Return how many wrong answers are this one, of how many, here and elsewhere: of wrong answers, and of samples."""
        here = int(taken[other]), int(taken.sum())
        # Samples of the other class cannot be wrong by its name, and of others those taken for this class say nothing.
        elsewhere = self._all_wrong - taken - self.wrong(other)
        wrong = int(elsewhere[other]), int(elsewhere.sum() - elsewhere[code])
        sizes = self._material.sizes
        return (*here, *wrong), (*here, int(sizes[other]), int(sizes.sum() - sizes[code]))

    def _grouped(self, code: int, other: int, simple: float) -> float:
        """Return the p-value with groups counted once; what does not even stand out image by image is not worth the work."""
        if simple * (self._n_classes - 1) > WORTH_DRAWING:
            return 1.0
        codes, said = self._material.codes, self._predicted
        chosen = (said >= 0) & (said != codes) & (said != code) & (codes != other)
        groups = None if self._material.groups is None else self._material.groups[chosen]
        test = GroupTest(said[chosen] == other, groups)
        return max(simple, test.p_value(codes[chosen] == code))


def _finding(material: ClassMaterial, code: int, pair: Pair, told: Answers) -> ClassFinding:
    own = material.codes == code
    n_samples, wrong = int(material.sizes[code]), told.wrong(code)
    is_any = pair.other >= 0
    n_taken, n_wrong = int(wrong[pair.other]) if is_any else 0, int(wrong.sum())
    low, high = material.interval(n_taken, own)
    name, taken_for = material.name(code), material.name(pair.other) if is_any else ""
    back = (int(told.of(pair.other)[code]), int(material.sizes[pair.other])) if is_any else (0, 0)
    return ClassFinding(
        kind=ClassFindingKind.CONFUSED,
        class_name=name,
        other_class=taken_for,
        verdict=Verdict.NOT_CONFIRMED,
        sentence=confused_sentence(
            name, taken_for, (n_taken, n_wrong, n_samples), share=pair.share, back=back
        ),
        n_samples=n_samples,
        n_failed=n_taken,
        rate=n_taken / n_samples,
        interval=Interval(low=low, high=high),
        reference=pair.share * n_wrong / n_samples,
        p_value=pair.p_value,
        question=material.question(ClassFindingKind.CONFUSED, name),
    )
