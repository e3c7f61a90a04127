"""Which class a class is taken for, more often than wrong answers are spread anyway."""

from dataclasses import dataclass

import numpy as np

from weakspot.core.arrays import IntArray
from weakspot.core.class_findings import ClassFinding, ClassFindingKind
from weakspot.core.evidence import Interval, Verdict
from weakspot.core.group_tests import MOST_GROUPS_DRAWN, GroupTest
from weakspot.core.statistics import fisher_p
from weakspot.verify.classes.material import ClassMaterial
from weakspot.verify.classes.wording import confused_sentence

FEWEST_TAKEN = 3
FEWEST_CLASSES = 3
BEST_TRIED = 3
FEW_CLASSES = 20
WORTH_DRAWING = 0.05


def ask_confused(material: ClassMaterial, *, least: int) -> list[ClassFinding]:
    """Return for every class with enough samples the class that it is most clearly taken for, tested but not yet judged.

    Under the null hypothesis the wrong answers that a class gets are spread as the other classes' samples are, or as the answers to
    these: a class that is large, or that the classifier likes to say, gets more of them. It has to be more than both, so the larger
    p-value counts. One question a class is asked ("is it taken for any class more often than that?"), so a thousand classes are a
    thousand questions; its p-value is that of the best of all possible wrong classes, times their number. The reverse direction is
    the other class's own question.

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
        share: its usual share, of the samples of other classes or of the answers that they get, whichever is larger.
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
        self._all = np.bincount(self._predicted[known], minlength=self._n_classes)
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
        others = self._all - self.of(code)
        others[code] = 0
        n_wrong, n_others = int(taken.sum()), int(others.sum())
        if not n_wrong or not n_others:
            return Pair(int(np.argmax(taken)) if n_wrong else -1)
        tried = np.flatnonzero(taken >= min(FEWEST_TAKEN, taken.max())).tolist()
        sizes = self._material.sizes.copy()
        sizes[code] = 0
        n_samples = int(sizes.sum())
        p_values = {
            other: max(
                fisher_p(int(taken[other]), n_wrong, int(others[other]), n_others),
                fisher_p(int(taken[other]), n_wrong, int(sizes[other]), n_samples),
            )
            for other in tried
        }
        if self._material.groups is not None:
            first = sorted(p_values, key=lambda other: (p_values[other], other))[:BEST_TRIED]
            p_values = {other: self._grouped(code, other, p_values[other]) for other in first}
        best = min(p_values, key=lambda other: (p_values[other], -taken[other], other))
        p_value = min(1.0, p_values[best] * (self._n_classes - 1))
        return Pair(
            best,
            share=max(int(others[best]) / n_others, int(sizes[best]) / n_samples),
            p_value=p_value if taken[best] >= FEWEST_TAKEN else 1.0,
        )

    def _grouped(self, code: int, other: int, simple: float) -> float:
        """Return the p-value with groups counted once; what does not even stand out image by image is not worth the work."""
        if simple * (self._n_classes - 1) > WORTH_DRAWING:
            return 1.0
        # What is right about the class itself says nothing about its wrong answers, and others' samples taken for it neither.
        chosen = (self._predicted != code) & (self._predicted >= 0)
        groups = None if self._material.groups is None else self._material.groups[chosen]
        own = self._material.codes[chosen] == code
        return max(simple, GroupTest(self._predicted[chosen] == other, groups).p_value(own))


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
