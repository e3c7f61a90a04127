"""The kinds of images that findings are about: which images are of each kind, and what repairs were measured to do for it."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from weakspot.core.arrays import BoolArray, DoubleArray, FloatArray, IntArray, even_part, generator
from weakspot.core.dataset import Dataset, Split, Task
from weakspot.core.evidence import ClassFinding, ClassFindingKind, Evidence, Interval
from weakspot.core.failures import ClassProblem, Side, class_problems
from weakspot.core.heads import Head
from weakspot.core.repairs import GroupChange, GroupKind, RepairPlan, RepairResult
from weakspot.core.run import RunRecord
from weakspot.core.samples import SampleSet
from weakspot.core.slices import FailureSlice, matches
from weakspot.repair.bench import RepairBench
from weakspot.repair.training.trainer import HeadTrainer
from weakspot.run.preparation import CLIP, FEATURES

PROBE = HeadTrainer(penalty=1e-2, tolerance=1e-3)
N_FOLDS = 5
MIN_SEEN = 5
MAX_FITTED = 1_000
MEMBERS_PASSED = 0.9


def space_of(samples: SampleSet) -> str | None:
    """Return the embeddings in which images are compared: those of an encoder that knows nothing of the classifier, where there are any."""
    return next((name for name in (CLIP, FEATURES) if name in samples.spaces), None)


def with_embedding(samples: SampleSet, rows: IntArray, space: str) -> IntArray:
    return np.asarray(rows[samples.has_embeddings(space, rows)], dtype=np.int64)


def fit_probe(kind: FloatArray, others: FloatArray) -> Head:
    """Return a layer whose second answer says that an image is of the kind; both sides weigh the same."""
    codes = np.repeat([1, 0], [len(kind), len(others)])
    weights = np.where(codes == 1, 1.0 / len(kind), 1.0 / len(others))
    trained = PROBE.train(
        np.concatenate([kind, others]), codes, weights, task=Task.SINGLE_LABEL, n_classes=2
    )
    return trained.head


def held_out_scores(
    samples: SampleSet, own: IntArray, others: IntArray, space: str, *, seed: int
) -> tuple[DoubleArray, DoubleArray]:
    """Return how much rows of a kind and other rows are like the kind, each by a probe that was fitted to others of its side.

    What belongs together is never on both sides of a probe.
    """
    rng = generator(seed, "likeness")
    sides = [(own, np.zeros(len(own))), (others, np.zeros(len(others)))]
    folds = []
    for rows, _ in sides:
        names, codes = np.unique(samples.dataset.groups[rows], return_inverse=True)
        folds.append((rng.permutation(len(names)) % N_FOLDS)[codes])
    for fold in range(N_FOLDS):
        fitted = [
            even_part(rows[one != fold], MAX_FITTED)
            for (rows, _), one in zip(sides, folds, strict=True)
        ]
        if not all(map(len, fitted)):
            continue
        head = fit_probe(*(samples.embeddings(space, rows) for rows in fitted))
        for (rows, into), one in zip(sides, folds, strict=True):
            into[one == fold] = probe_by_blocks(samples, rows[one == fold], space, head)
    return sides[0][1], sides[1][1]


def probe_by_blocks(samples: SampleSet, rows: IntArray, space: str, head: Head) -> DoubleArray:
    logits = samples.by_blocks(space, rows, head.logits)
    return np.asarray(logits[:, 1] - logits[:, 0], dtype=np.float64)


def is_like(samples: SampleSet, rows: IntArray, kind: IntArray, *, seed: int) -> BoolArray | None:
    """Return which rows [n] are as much like the rows of a kind as nine of ten of these are; None if that cannot be told.

    Every row is judged by a probe that was fitted to others, so that rows of the very same kind pass in nine of ten cases.
    """
    space = space_of(samples)
    if space is None:
        return None
    is_known = samples.has_embeddings(space, rows)
    known, own = rows[is_known], with_embedding(samples, even_part(kind, MAX_FITTED), space)
    if len(own) < MIN_SEEN or 0 < len(known) < MIN_SEEN:
        return None
    found = np.zeros(len(rows), dtype=np.bool_)
    if len(known):
        own_scores, scores = held_out_scores(samples, own, known, space, seed=seed)
        found[is_known] = scores >= np.quantile(own_scores, 1 - MEMBERS_PASSED)
    return found


ADVISED = (ClassFindingKind.WHOLE, ClassFindingKind.SHIFT, ClassFindingKind.UNTRAINED)
MAX_KINDS = 10
NOTHING: tuple[IntArray, BoolArray] = (np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.bool_))


@dataclass(frozen=True, kw_only=True, eq=False)
class ImageKind:
    """A kind of image that a finding is about.

    Args:
        subject: id of the slice or class finding.
        title: what it is called.
        class_name: its class.
        side: of a multi-label task, whether images have or lack the label.
        words: what it looks like, best first; empty if no words are known.
        words_there: what training images of the class look like instead.
        slice_: the slice; None if it is about a whole class.
        class_finding: the finding about a whole class; None for a slice.
        evidence: of the slice.
        discovery: the half that may be looked at.
        rows: labelled evaluation rows of the kind in that half.
        failed: which of them fail.
        training: labelled training rows of the kind; None if training samples are not known.
        n_class_training: labelled training rows of the class.
        n_evaluated: evaluation samples of the kind that the finding was measured on.
        n_failed: failures among them.
        n_measured: test samples of the kind, on which a repair will be measured; without any, `n_evaluated`.
    """

    subject: str
    title: str
    class_name: str
    side: Side | None = None
    words: tuple[str, ...] = ()
    words_there: tuple[str, ...] = ()
    slice_: FailureSlice | None = None
    class_finding: ClassFinding | None = None
    evidence: Evidence | None = None
    discovery: SampleSet
    rows: IntArray
    failed: BoolArray
    training: IntArray | None
    n_class_training: int
    n_evaluated: int
    n_failed: int
    n_measured: int

    def is_of_class(self, rows: IntArray) -> BoolArray:
        """Return which labelled rows [n] are of the class of the kind."""
        has_label = has_class(self.discovery.dataset, rows, self.class_name)
        return ~has_label if self.side is Side.ABSENT else has_label

    @property
    def n_known(self) -> int | None:
        return None if self.training is None else len(self.training)


def kinds_of(record: RunRecord, bench: RepairBench) -> tuple[ImageKind, ...]:
    """Return the kinds of a run's findings with the most failures, most first."""
    by_class: dict[str, list[ClassFinding]] = {}
    for finding in record.class_findings:
        if finding.is_confirmed and finding.kind in ADVISED:
            by_class.setdefault(finding.class_name, []).append(finding)
    evidence = {entry.slice_id: entry for entry in record.evidence}
    slices = sorted(record.findings(), key=lambda one: -evidence[one.slice_id].failures_inside)
    kinds = [_of_class(findings, bench) for findings in by_class.values()]
    kinds += [_of_slice(one, evidence[one.slice_id], bench) for one in slices[:MAX_KINDS]]
    return tuple(sorted(kinds, key=lambda kind: -kind.n_failed)[:MAX_KINDS])


def _of_slice(slice_: FailureSlice, entry: Evidence, bench: RepairBench) -> ImageKind:
    samples = bench.samples
    # Of a rule that was made without predictions, the first half.
    discovery = next(
        (half for half, _ in bench.pairs if len(half) and half.digest() == slice_.found_on.digest),
        bench.pairs[0][0],
    )
    problem = _problem(discovery, bench, lambda one: matches(slice_, one))
    rows, failed = NOTHING
    if problem is not None:
        inside = slice_.inside(samples, problem)
        rows, failed = problem.rows[inside], problem.failed[inside]
    training = _training(samples)
    own = None if training is None else slice_.class_rows(training)
    test = slice_.class_rows(_test(bench))
    return ImageKind(
        subject=slice_.slice_id,
        title=slice_.title,
        class_name=slice_.class_name,
        side=slice_.side,
        words=tuple(name.contrast for name in slice_.names if not name.is_unsure),
        slice_=slice_,
        evidence=entry,
        discovery=discovery,
        rows=rows,
        failed=failed,
        training=None if own is None else slice_.members(samples, own),
        n_class_training=0 if own is None else len(own),
        n_evaluated=entry.n_inside,
        n_failed=entry.failures_inside,
        n_measured=len(slice_.members(samples, test)) or entry.n_inside,
    )


def _of_class(findings: list[ClassFinding], bench: RepairBench) -> ImageKind:
    findings.sort(key=lambda one: ADVISED.index(one.kind))
    class_name, discovery = findings[0].class_name, bench.pairs[0][0]
    problem = _problem(discovery, bench, lambda one: one.class_name == class_name)
    rows, failed = NOTHING if problem is None else (problem.rows, problem.failed)
    training = _training(bench.samples)
    own = None if training is None else _rows_of(training, class_name)
    like = None if own is None else is_like(bench.samples, own, rows, seed=bench.settings.seed)
    shifted = next((one for one in findings if one.words_here), findings[0])
    measured = next((one for one in findings if one.n_samples), findings[0])
    is_whole = measured.kind is ClassFindingKind.WHOLE
    return ImageKind(
        subject=findings[0].finding_id,
        title=class_name,
        class_name=class_name,
        words=shifted.words_here,
        words_there=shifted.words_there,
        class_finding=findings[0],
        discovery=discovery,
        rows=rows,
        failed=failed,
        training=own if own is None or like is None else own[like],
        n_class_training=0 if own is None else len(own),
        n_evaluated=measured.n_samples or len(rows),
        n_failed=measured.n_failed if is_whole else int(failed.sum()),
        n_measured=len(_rows_of(_test(bench), class_name)) or measured.n_samples or len(rows),
    )


def _problem(
    discovery: SampleSet, bench: RepairBench, is_meant: Callable[[ClassProblem], bool]
) -> ClassProblem | None:
    problems = class_problems(bench.samples.dataset, discovery.rows, bench.criterion)
    return next(filter(is_meant, problems), None)


def _training(samples: SampleSet) -> SampleSet | None:
    """Return labelled training samples, None if there are no training samples."""
    rows = samples.dataset.rows_of(Split.TRAIN)
    return samples.only(rows) if len(rows) else None


def _test(bench: RepairBench) -> SampleSet:
    """Return the test samples that neither half holds: what a repair is measured on."""
    rows = bench.samples.dataset.rows_of(Split.TEST)
    used = np.concatenate([part.rows for part in bench.pairs[0]])
    return bench.samples.only(rows[~np.isin(rows, used)])


def has_class(dataset: Dataset, rows: IntArray, class_name: str) -> BoolArray:
    """Return which rows [n] have a class, or in a multi-label task a label; a matrix of all classes would be large."""
    code = dataset.class_code(class_name)
    if dataset.task is Task.SINGLE_LABEL:
        return np.asarray(dataset.labels[rows] == code, dtype=np.bool_)
    return np.asarray(dataset.label_matrix[rows, code], dtype=np.bool_)


def _rows_of(samples: SampleSet, class_name: str) -> IntArray:
    return np.asarray(
        samples.rows[has_class(samples.dataset, samples.rows, class_name)], dtype=np.int64
    )


CERTAIN = 0.05


@dataclass(frozen=True, kw_only=True)
class MeasuredRepair:
    """The best repair of a kind so far, baselines and other models left out.

    Args:
        plan: what was done.
        change: what it did for the kind, on test samples.
        n_added: pool and generated samples that it trained on.
    """

    plan: RepairPlan
    change: GroupChange
    n_added: int

    @property
    def interval(self) -> Interval:
        return self.change.interval_of_change

    @property
    def helps(self) -> bool:
        return self.change.change > 0 and self.change.chance <= CERTAIN


def best_repair(record: RunRecord, kind: ImageKind) -> MeasuredRepair | None:
    """Return the repair that did most for a kind; None if none was measured on it."""
    found = [
        one
        for result in record.repairs
        if (one := _measured(result, kind)) is not None and one.change.n_samples
    ]
    return max(found, key=lambda one: (one.helps, one.change.change), default=None)


def _measured(result: RepairResult, kind: ImageKind) -> MeasuredRepair | None:
    if not result.arms or all(arm.is_baseline for arm in result.arms):
        return None
    arm = result.repaired
    change = (
        arm.change_of(GroupKind.CLASS, kind.title)
        if kind.slice_ is None
        else result.change_of_slice(kind.subject)
    )
    if change is None:
        return None
    return MeasuredRepair(plan=result.plan, change=change, n_added=arm.n_added + arm.n_synthetic)
