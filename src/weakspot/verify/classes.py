"""Whole classes tested: which fails more often than the others, what it is taken for, and the sentences that say so."""

import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pat

from weakspot.core.arrays import BoolArray, DoubleArray, FloatArray, IntArray, generator, unit_rows
from weakspot.core.dataset import NO_LABEL, Dataset, Task, several_to_a_group
from weakspot.core.evidence import ClassFinding, ClassFindingKind, Interval, Verdict
from weakspot.core.failures import FailureCriterion, Side, class_problems, predicted_classes
from weakspot.core.group_tests import MAX_GROUPS_DRAWN, GroupTest, effective_number, group_interval
from weakspot.core.samples import SampleSet
from weakspot.core.statistics import RankSum, fisher_p, wilson_interval

DATA_SEED = 0
"""A new seed must not buy a new chance."""


@dataclass(frozen=True, kw_only=True, eq=False)
class ClassMaterial:
    """One entry a sample and class that it is tested as; in multi-label tasks a sample is there once for every label it has.

    Args:
        dataset: the samples.
        rows: rows of the data set [n].
        codes: the class of each [n].
        failed: which of them failed [n].
        predicted: what they were taken for [n]; None in multi-label tasks, where a label is missed rather than taken for another.
        groups: number of the group of each [n]; None if every sample is a group of its own.
    """

    dataset: Dataset
    rows: IntArray
    codes: IntArray
    failed: BoolArray
    predicted: IntArray | None
    groups: IntArray | None

    @classmethod
    def of(cls, dataset: Dataset, rows: IntArray, criterion: FailureCriterion) -> "ClassMaterial":
        """Return the labelled samples with predictions; of multi-label classes only samples that have the label."""
        problems = [
            one for one in class_problems(dataset, rows, criterion) if one.side is not Side.ABSENT
        ]
        nothing = np.zeros(0, dtype=np.int64)
        own = np.concatenate([nothing, *(one.rows for one in problems)])
        codes = np.repeat(
            [dataset.class_code(one.class_name) for one in problems],
            [len(one.rows) for one in problems],
        ).astype(np.int64)
        is_single = dataset.task is Task.SINGLE_LABEL
        return cls(
            dataset=dataset,
            rows=own,
            codes=codes,
            failed=np.concatenate([nothing > 0, *(one.failed for one in problems)]),
            predicted=predicted_classes(dataset, own) if is_single and len(own) else None,
            groups=several_to_a_group(dataset.groups[own]) if len(own) else None,
        )

    def __len__(self) -> int:
        """Return the number of entries."""
        return len(self.rows)

    @cached_property
    def sizes(self) -> IntArray:
        """Return the samples of every class [c]."""
        return np.bincount(self.codes, minlength=self.dataset.n_classes)

    @cached_property
    def failures(self) -> IntArray:
        """Return the failures of every class [c]."""
        return np.bincount(self.codes[self.failed], minlength=self.dataset.n_classes)

    def name(self, code: int) -> str:
        return self.dataset.class_names[code]

    def only(self, chosen: BoolArray | IntArray) -> "ClassMaterial":
        return replace(
            self,
            rows=self.rows[chosen],
            codes=self.codes[chosen],
            failed=self.failed[chosen],
            predicted=None if self.predicted is None else self.predicted[chosen],
            groups=None if self.groups is None else several_to_a_group(self.groups[chosen]),
        )

    def one_of_each_group(self) -> "ClassMaterial":
        """Return one entry of every group, chosen by its place alone."""
        if self.groups is None:
            return self
        order = generator(DATA_SEED, "representatives").permutation(len(self.rows))
        _, first = np.unique(self.groups[order], return_index=True)
        return self.only(np.sort(order[first]))

    def interval(self, count: int, chosen: BoolArray) -> tuple[float, float]:
        """Return the interval of a share of the chosen entries [n]; groups count once."""
        return group_interval(count, int(chosen.sum()), effective_number(self.groups, chosen))

    @cached_property
    def digest(self) -> bytes:
        """Return a hash over everything that answers follow from: samples, classes, failures, predictions and groups."""
        ids = np.array(self.dataset.sample_ids(self.rows), dtype=np.str_)
        order = np.lexsort((self.codes, ids))
        hashed = hashlib.sha256("\n".join(ids[order].tolist()).encode())
        names = np.array([*self.dataset.class_names, ""], dtype=np.str_)
        said = np.full(len(self), NO_LABEL) if self.predicted is None else self.predicted
        for values in (names[self.codes[order]], names[said[order]]):
            hashed.update("\n".join(values.tolist()).encode())
        hashed.update(np.packbits(self.failed[order]).tobytes())
        if self.groups is not None:
            _, first, codes = np.unique(self.groups[order], return_index=True, return_inverse=True)
            hashed.update(np.argsort(np.argsort(first))[codes].astype(np.int64).tobytes())
        return hashed.digest()

    def question(self, *parts: str) -> str:
        """Return the name of a question about a class, by what its answer follows from."""
        said = "\x1f".join(parts).encode()
        return hashlib.sha256(self.digest + said).hexdigest()[:24]


HALF = 0.5


def percent(value: float) -> str:
    """Return a share in per cent.

    >>> percent(0.923)
    '92 %'
    """
    return f"{100 * value:.0f} %"


def whole_sentence(
    name: str, table: tuple[int, int, int, int], *, other: str = "", n_other: int = 0
) -> str:
    """Return that a class fails; it is said to fail as a whole where at least half of it does.

    Args:
        name: the class.
        table: its failures and samples, failures and samples of the other classes.
        other: the class that most failures are taken for, empty if there is none.
        n_other: how many are.

    >>> whole_sentence("heron", (48, 52, 24, 156), other="crane", n_other=44)
    'heron fails as a whole: 48 of 52 (92 %), the other classes 24 of 156 (15 %); mostly taken for crane (44)'
    """
    failed, total, failed_others, others = table
    said = (
        "fails as a whole" if failed >= HALF * total else "fails more often than the other classes"
    )
    there = failed_others / others if others else 0.0
    mostly = f"; mostly taken for {other} ({n_other})" if other else ""
    return (
        f"{name} {said}: {failed} of {total} ({percent(failed / total)}), "
        f"the other classes {failed_others} of {others} ({percent(there)}){mostly}"
    )


def confused_sentence(
    name: str, other: str, counts: tuple[int, int, int], *, share: float, back: tuple[int, int]
) -> str:
    """Return what a class is taken for, and how often the reverse happens.

    Args:
        name: the class.
        other: what it is taken for.
        counts: how many samples are, all its wrong answers, all its samples.
        share: how much of them would be usual.
        back: samples of the other class that are taken for this one, and how many it has.

    >>> confused_sentence("heron", "crane", (44, 48, 52), share=0.31, back=(2, 52))
    'heron is taken for crane: 44 of its 48 wrong answers (usual share 31 %); the reverse 2 of 52'
    """
    taken, wrong, _ = counts
    return (
        f"{name} is taken for {other}: {taken} of its {wrong} wrong answers "
        f"(usual share {percent(share)}); the reverse {back[0]} of {back[1]}"
    )


def untrained_sentence(name: str, n_failed: int, n_samples: int) -> str:
    """Return that a class has no training images.

    >>> untrained_sentence("owl", 12, 14)
    'owl has no training images; 12 of its 14 evaluation images fail'
    """
    return f"{name} has no training images; {n_failed} of its {n_samples} evaluation images fail"


def drift_sentence(
    name: str, column: str, rates: tuple[float, float], *, since: str, is_later: bool
) -> str:
    """Return that a class fails more the later, or the earlier.

    Args:
        name: the class.
        column: that tells the time.
        rates: failure rates of the earliest and of the latest third.
        since: where the latest third begins, or the earliest one ends.
        is_later: whether later samples fail more.

    >>> drift_sentence("owl", "date", (0.08, 0.4), since="2024-03-01", is_later=True)
    'owl fails more often the later its date: 40 % from 2024-03-01 on, 8 % of the earliest third'
    """
    early, late = rates
    if is_later:
        return (
            f"{name} fails more often the later its {column}: {percent(late)} from {since} on, "
            f"{percent(early)} of the earliest third"
        )
    return (
        f"{name} fails more often the earlier its {column}: {percent(early)} up to {since}, "
        f"{percent(late)} of the latest third"
    )


def shift_sentence(
    name: str,
    auc: float,
    *,
    here: Sequence[str] = (),
    there: Sequence[str] = (),
    throughout: tuple[int, int] | None = None,
) -> str:
    """Return that evaluation images of a class look unlike its training images.

    Args:
        name: the class.
        auc: how well held-out images are told apart.
        here: words for evaluation images.
        there: words for training images.
        throughout: in how many classes, of how many, that is so, if it is so almost everywhere.

    >>> shift_sentence("heron", 0.93, here=["standing", "reeds"], there=["flying"])
    'heron looks unlike training: “standing, reeds” here, “flying” there (told apart with AUC 0.93; chance 0.5)'
    """
    ends = [
        f"“{', '.join(words)}” {place}"
        for words, place in ((here, "here"), (there, "there"))
        if words
    ]
    said = f": {', '.join(ends)}" if ends else ""
    everywhere = (
        f"; so do {throughout[0]} of {throughout[1]} classes, the two sets differ throughout"
        if throughout
        else ""
    )
    return f"{name} looks unlike training{said} (told apart with AUC {auc:.2f}; chance 0.5){everywhere}"


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
        _whole_finding(material, code, p_value)
        for code, p_value in zip(asked, _p_values(material, asked), strict=True)
    ]


def _whole_finding(material: ClassMaterial, code: int, p_value: float) -> ClassFinding:
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
    if n_groups > MAX_GROUPS_DRAWN and len(asked) > FEW_CLASSES:
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


Table: TypeAlias = tuple[int, int, int, int]
MIN_TAKEN = 3
MIN_CLASSES = 3
BEST_TRIED = 3

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
    if material.predicted is None or np.count_nonzero(material.sizes) < MIN_CLASSES:
        return []
    asked = np.flatnonzero(material.sizes >= least).tolist()
    n_groups = 0 if material.groups is None else int(material.groups.max()) + 1
    is_large = n_groups > MAX_GROUPS_DRAWN and len(asked) > FEW_CLASSES
    tested = Answers(material.one_of_each_group() if is_large else material, material.predicted)
    told = Answers(material, material.predicted)
    return [_confused_finding(material, code, tested.best(code), told) for code in asked]


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
        tried = np.flatnonzero(taken >= min(MIN_TAKEN, max(1, taken.max()))).tolist()
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
        return Pair(best, share=max(shares), p_value=p_value if taken[best] >= MIN_TAKEN else 1.0)

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


def _confused_finding(
    material: ClassMaterial, code: int, pair: Pair, told: Answers
) -> ClassFinding:
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
