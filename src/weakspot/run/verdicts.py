"""Verdicts of slices and what is said of whole classes, read off the ledger.

What was measured goes in as questions; what may be said of it comes back.
"""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from weakspot.core.arrays import IntArray
from weakspot.core.dataset import Dataset, Split, Task, as_given
from weakspot.core.evidence import ClassFinding, ClassFindingKind, Evidence, Verdict
from weakspot.core.failures import ClassProblem, FailureCriterion, class_problems, predicted_classes
from weakspot.core.group_tests import effective_number
from weakspot.core.run import ClassifierFacts, RunRecord
from weakspot.core.samples import SampleSet
from weakspot.core.slices import FailureSlice
from weakspot.core.statistics import Correction, adjusted_p_values
from weakspot.run.halves import Halves, used_rows
from weakspot.run.ledger import BESIDE, Answer, AskedData, AskedTest, Ledger
from weakspot.run.naming import ShiftNamer
from weakspot.run.preparation import CLIP, Prepared
from weakspot.run.settings import Settings
from weakspot.run.wiring import build_describer, build_verifier
from weakspot.store.project import ProjectStore
from weakspot.verify.classes import (
    MIN_AUC,
    ClassMaterial,
    ask_confused,
    ask_drift,
    ask_shift,
    ask_whole,
    shift_sentence,
    untrained_sentence,
)

ALPHA = 0.05
"""Error rate over everything that samples are asked, where the verifier has no setting for it."""
MIN_WEIGHT = 1e-6
CLASS_PART = 0.075
"""Part of what a batch may spend that is for questions about whole classes, if it asks any; slices have the rest."""
TESTED = (Verdict.CONFIRMED, Verdict.NOT_CONFIRMED)


def open_ledger(store: ProjectStore, samples: SampleSet, settings: Settings) -> Ledger:
    """Return the ledger of the samples that a project evaluates on, at the error rate of its verifier."""
    return ledger_at(store, AskedData.of(samples.dataset, used_rows(samples, settings)), settings)


def ledger_at(store: ProjectStore, data: AskedData, settings: Settings) -> Ledger:
    """Return the ledger of some samples, at the error rate of the verifier that is configured."""
    verifier = build_verifier(settings)
    return Ledger(
        store=store,
        data=data,
        alpha=float(getattr(verifier, "alpha", ALPHA)),
        correction=getattr(verifier, "correction", "fdr"),
    )


@dataclass(frozen=True, kw_only=True)
class Asking:
    """Somebody who puts questions to held-out samples.

    Args:
        ledger: of the samples.
        source: what asks, for example `verify`.
        by: who asks; empty for the command line.
        classes: questions about whole classes that are asked in the same batch; whoever gives them recalls the answers.
    """

    ledger: Ledger
    source: str
    by: str = ""
    classes: tuple[AskedTest, ...] = ()


def judged(
    folds: Sequence[Sequence[Evidence]],
    asking: Asking,
    *,
    min_gap: float,
    slices: Sequence[FailureSlice] = (),
    parts: Sequence[float] = (1.0,),
) -> tuple[tuple[Evidence, ...], ...]:
    """Return evidence with the adjusted values and verdicts that the ledger gives it.

    A slice that was confirmed before stays so, also where another one with nearly the same members is tested in its place now
    and fails.

    Args:
        folds: what the verifier measured, one sequence a fold; folds divide what the batch may spend.
        asking: who asks, and the ledger.
        min_gap: least difference of failure rates for a confirmed finding.
        slices: what the evidence is about, for their titles in the file.
        parts: how much of what the batch may spend each fold has.
    """
    ledger = asking.ledger
    names = {found.slice_id: found.title for found in slices}
    asked = [
        AskedTest(
            key=question_of(entry),
            p_value=entry.p_value if _is_wide(entry, min_gap) else 1.0,
            weight=entry.weight,
            family=number,
            about=names.get(entry.slice_id, ""),
        )
        for number, entries in enumerate(folds)
        for entry in entries
        if entry.verdict in TESTED
    ]
    beside = [one for number, fold in enumerate(folds) for one in _beside(fold, number)]
    total = max(1.0, sum(parts[number] for number in {one.family for one in asked}))
    known = ledger.recall([one.key for one in asking.classes]) if asking.classes else {}
    own_family = [
        one.model_copy(update={"family": len(parts)})
        for one in asking.classes
        if one.key not in known
    ]
    left = 1.0 - CLASS_PART if own_family else 1.0
    answers = ledger.ask(
        [*asked, *beside, *own_family],
        source=asking.source,
        by=asking.by,
        parts=[*(left * part / total for part in parts), *([CLASS_PART] if own_family else [])],
    )[: len(asked)]
    by_key = {one.key: answer for one, answer in zip(asked, answers, strict=True)}
    represented = [
        question_of(entry)
        for entries in folds
        for entry in entries
        if entry.verdict is Verdict.SAME
    ]
    return tuple(
        _with_earlier(
            [
                _judge(entry, by_key[question_of(entry)], min_gap)
                if entry.verdict in TESTED
                else entry
                for entry in entries
            ],
            ledger.recall(represented) if represented else {},
            min_gap,
        )
        for entries in folds
    )


def _beside(entries: Sequence[Evidence], family: int) -> list[AskedTest]:
    """Return, as tests that found nothing, what a fold tested beside the slices at hand: they take their part of the weight."""
    tested = [entry for entry in entries if entry.verdict in TESTED]
    n_missing = max((entry.n_tested for entry in tested), default=0) - len(tested)
    if n_missing <= 0:
        return []
    left = len(tested) + n_missing - sum(entry.weight for entry in tested)
    name = hashlib.sha256("\n".join(map(question_of, tested)).encode()).hexdigest()[:16]
    return [
        AskedTest(
            key=f"{BESIDE}{name} {number}",
            p_value=1.0,
            weight=max(left / n_missing, MIN_WEIGHT),
            family=family,
        )
        for number in range(n_missing)
    ]


def question_of(entry: Evidence) -> str:
    """Return the name of the question that a measurement answers; a verifier of a plug-in may not give one."""
    return entry.question or f"{entry.slice_id} {entry.measured_on.digest}"


def was_tested(entry: Evidence) -> bool:
    """Return whether a slice has a test of its own: of slices with nearly the same members only one has.

    A slice that was confirmed in one fold and is the same as one of another fold was tested nevertheless.
    """
    return entry.verdict in TESTED or (entry.verdict is Verdict.SAME and entry.q_value < 1.0)


def _judge(entry: Evidence, answer: Answer, min_gap: float) -> Evidence:
    is_found = answer.is_found and _is_wide(entry, min_gap)
    return entry.model_copy(
        update={
            "q_value": answer.q_value,
            "n_tested": answer.n_tested,
            "batch": answer.batch,
            "verdict": Verdict.CONFIRMED if is_found else Verdict.NOT_CONFIRMED,
        }
    )


def _with_earlier(
    entries: Sequence[Evidence], known: Mapping[str, Answer], min_gap: float
) -> tuple[Evidence, ...]:
    verdicts = {entry.slice_id: entry.verdict for entry in entries}
    return tuple(
        _judge(
            entry.model_copy(
                update={"same_as": None, "p_value": known[question_of(entry)].p_value}
            ),
            known[question_of(entry)],
            min_gap,
        )
        if entry.verdict is Verdict.SAME
        and question_of(entry) in known
        and known[question_of(entry)].is_found
        and verdicts.get(entry.same_as or "") is not Verdict.CONFIRMED
        else entry
        for entry in entries
    )


def _is_wide(entry: Evidence, min_gap: float) -> bool:
    return entry.gap > 0 and entry.gap >= min_gap


MAX_CONFUSIONS = 3
ROWS_AT_ONCE = 65_536


def classifier_facts(
    dataset: Dataset, rows: IntArray, criterion: FailureCriterion
) -> ClassifierFacts:
    """Count samples and failures of every class among the evaluation rows, and of all training samples together.

    By labels as given: people correct those of the half that they look at, and with predictions before their eyes.
    """
    dataset = as_given(dataset)
    problems = class_problems(dataset, rows, criterion)
    is_single = dataset.task is Task.SINGLE_LABEL
    return ClassifierFacts(
        n_samples=sum(len(problem.rows) for problem in problems),
        n_failed=sum(problem.n_failed for problem in problems),
        per_class={problem.title: (len(problem.rows), problem.n_failed) for problem in problems},
        confusions=_confusions(dataset, problems) if is_single else {},
        training=_count_training(dataset, criterion),
        counted=_counted(dataset, rows) if is_single else "labels",
        effective=_effective(dataset, problems) if is_single else None,
    )


def _confusions(
    dataset: Dataset, problems: Sequence[ClassProblem]
) -> dict[str, tuple[tuple[str, int], ...]]:
    found: dict[str, tuple[tuple[str, int], ...]] = {}
    names = dataset.class_names
    for problem in problems:
        said = predicted_classes(dataset, problem.rows[problem.failed])
        codes, counts = np.unique(said, return_counts=True)
        wrong = [
            (names[code], count)
            for code, count in zip(codes.tolist(), counts.tolist(), strict=True)
            if code >= 0 and names[code] != problem.class_name
        ]
        wrong.sort(key=lambda one: (-one[1], one[0]))
        if wrong:
            found[problem.title] = tuple(wrong[:MAX_CONFUSIONS])
    return found


def _count_training(dataset: Dataset, criterion: FailureCriterion) -> tuple[int, int] | None:
    rows = with_predictions(dataset, dataset.rows_of(Split.TRAIN))
    n_samples = n_failed = 0
    for start in range(0, len(rows), ROWS_AT_ONCE):
        for problem in class_problems(dataset, rows[start : start + ROWS_AT_ONCE], criterion):
            n_samples += len(problem.rows)
            n_failed += problem.n_failed
    return (n_samples, n_failed) if n_samples else None


def with_predictions(dataset: Dataset, rows: IntArray) -> IntArray:
    """Return the rows that the classifier said something of; a table may hold predictions for some samples only."""
    if dataset.predictions is not None or dataset.probabilities is None:
        return rows
    known = np.concatenate(
        [
            ~np.isnan(dataset.probabilities[rows[start : start + ROWS_AT_ONCE]]).any(axis=1)
            for start in range(0, len(rows), ROWS_AT_ONCE)
        ]
        or [np.zeros(0, dtype=np.bool_)]
    )
    chosen: IntArray = rows[known]
    return chosen


def _counted(dataset: Dataset, rows: IntArray) -> str:
    has_images = any(place is not None for place in dataset.locations(rows[:1]))
    return "images" if has_images else "samples"


def _effective(dataset: Dataset, problems: Sequence[ClassProblem]) -> float | None:
    if not any(problem.groups is not None for problem in problems):
        return None
    rows = np.concatenate([problem.rows for problem in problems])
    return effective_number(dataset.groups[rows], np.ones(len(rows), dtype=np.bool_))


SPACE = CLIP
"""The classifier's own features would differ between training and evaluation for any classifier that has learnt its training set."""
SHIFT_PART = 0.2
MIN_GAP = 0.1
SUSPECTED_P = 0.05
MAX_SUSPECTED = 10
MIN_THROUGHOUT, SHARE_THROUGHOUT = 3, 2 / 3
KIND_ORDER = tuple(ClassFindingKind)


@dataclass(frozen=True, kw_only=True, eq=False)
class ClassQuestions:
    """What the classes of a data set are asked, tested but not yet judged.

    Args:
        asked: of predictions, judged by the ledger.
        shifts: of images alone, judged by themselves.
        counted: what needs no test.
        min_gap: least difference for a finding.
        alpha: error rate.
        correction: which error rate is meant.
    """

    asked: tuple[ClassFinding, ...] = ()
    shifts: tuple[ClassFinding, ...] = ()
    counted: tuple[ClassFinding, ...] = ()
    min_gap: float = MIN_GAP
    alpha: float = 0.05
    correction: Correction = "fdr"

    @property
    def tests(self) -> tuple[AskedTest, ...]:
        """Return the questions as the ledger takes them."""
        return tuple(
            AskedTest(
                key=one.question,
                p_value=self._counted_p(one),
                about=f"{one.class_name}: {one.kind.value}",
            )
            for one in self.asked
        )

    def _counted_p(self, one: ClassFinding) -> float:
        is_wide = one.rate - (one.reference or 0.0) >= self.min_gap
        return 1.0 if one.p_value is None or not is_wide else one.p_value

    def judged(self, ledger: Ledger) -> tuple[ClassFinding, ...]:
        """Return what is confirmed or stands out, those of the worst classes first; the questions were put to the ledger before."""
        answers = ledger.recall([one.question for one in self.asked])
        told = [*self.counted, *self._asked(answers), *self._shifts()]
        confirmed = [one for one in told if one.is_confirmed]
        suspected = sorted(
            (one for one in told if not one.is_confirmed),
            key=lambda one: (one.p_value or 0.0, one.finding_id),
        )[:MAX_SUSPECTED]
        return _ordered([*confirmed, *suspected])

    def _asked(self, answers: Mapping[str, Answer]) -> list[ClassFinding]:
        return [
            one.model_copy(
                update={
                    "q_value": answer.q_value,
                    "batch": answer.batch,
                    "verdict": Verdict.CONFIRMED if answer.is_found else Verdict.NOT_CONFIRMED,
                }
            )
            for one in self.asked
            if (answer := answers.get(one.question)) is not None
            and (answer.is_found or self._counted_p(one) <= SUSPECTED_P)
        ]

    def _shifts(self) -> list[ClassFinding]:
        p_values = [
            1.0 if one.p_value is None or one.rate < MIN_AUC else one.p_value for one in self.shifts
        ]
        q_values = adjusted_p_values(p_values, correction=self.correction, share=SHIFT_PART)
        found = [
            one.model_copy(update={"q_value": float(q_value), "verdict": Verdict.CONFIRMED})
            for one, q_value in zip(self.shifts, q_values, strict=True)
            if q_value <= self.alpha
        ]
        is_throughout = len(found) >= max(MIN_THROUGHOUT, SHARE_THROUGHOUT * len(self.shifts))
        if not is_throughout:
            return found
        counts = len(found), len(self.shifts)
        return [
            one.model_copy(
                update={"sentence": shift_sentence(one.class_name, one.rate, throughout=counts)}
            )
            for one in found
        ]


def ask_classes(
    samples: SampleSet, settings: Settings, criterion: FailureCriterion
) -> ClassQuestions:
    """Return everything that the classes of the evaluation samples are asked, by labels as given."""
    samples = replace(samples, dataset=as_given(samples.dataset))
    dataset, verifier = samples.dataset, build_verifier(settings)
    material = ClassMaterial.of(dataset, used_rows(samples, settings), criterion)
    if not len(material):
        return ClassQuestions()
    least = int(getattr(verifier, "min_support", 5))
    training = dataset.rows_of(Split.TRAIN)
    training = training[dataset.is_labelled[training]]
    counts = _training_counts(samples, training)
    asked = [*ask_whole(material, least=least), *ask_confused(material, least=least)]
    shifts = (
        ask_shift(samples, SPACE, np.unique(material.rows), training)
        if SPACE in samples.spaces and len(training)
        else []
    )
    return ClassQuestions(
        asked=tuple(_with_training([*asked, *ask_drift(material)], counts)),
        shifts=tuple(shifts),
        counted=tuple(_untrained(material, counts)),
        min_gap=max(MIN_GAP, float(getattr(verifier, "min_gap", 0.0))),
        alpha=float(getattr(verifier, "alpha", 0.05)),
        correction=getattr(verifier, "correction", "fdr"),
    )


def tell_classes(
    record: RunRecord,
    questions: ClassQuestions,
    ledger: Ledger,
    prepared: Prepared,
    settings: Settings,
    halves: Halves,
) -> RunRecord:
    """Return a run with what is said of whole classes; shifts get words and example images of both ends."""
    namer = ShiftNamer(
        samples=prepared.samples,
        space=SPACE,
        shown=halves[0][0].rows,
        kept=halves[0][1].rows,
        describer=build_describer(settings),
        assistants=prepared.assistants,
    )
    findings = namer.named(questions.judged(ledger))
    return record.model_copy(update={"class_findings": findings})


def _training_counts(samples: SampleSet, training: np.ndarray) -> dict[str, int] | None:
    """Return the training samples of every class; None if none is known."""
    if not len(training):
        return None
    dataset = samples.dataset
    per_class = dataset.label_matrix[training].sum(axis=0)
    return dict(zip(dataset.class_names, per_class.tolist(), strict=True))


def _with_training(
    findings: Sequence[ClassFinding], counts: dict[str, int] | None
) -> list[ClassFinding]:
    if counts is None:
        return list(findings)
    return [one.model_copy(update={"n_training": counts[one.class_name]}) for one in findings]


def _untrained(material: ClassMaterial, counts: dict[str, int] | None) -> list[ClassFinding]:
    if counts is None:
        return []
    return [
        ClassFinding(
            kind=ClassFindingKind.UNTRAINED,
            class_name=material.name(code),
            verdict=Verdict.CONFIRMED,
            sentence=untrained_sentence(
                material.name(code), int(material.failures[code]), int(material.sizes[code])
            ),
            n_samples=int(material.sizes[code]),
            n_failed=int(material.failures[code]),
            rate=int(material.failures[code]) / int(material.sizes[code]),
            n_training=0,
        )
        for code in np.flatnonzero(material.sizes).tolist()
        if not counts[material.name(code)]
    ]


def _ordered(findings: Sequence[ClassFinding]) -> tuple[ClassFinding, ...]:
    """Return confirmed findings first, class by class: the class with most failures beyond what is usual first."""
    excess: dict[str, float] = {}
    for one in findings:
        if one.is_confirmed and one.kind is not ClassFindingKind.SHIFT:
            beyond = one.n_failed - (one.reference or 0.0) * one.n_samples
            excess[one.class_name] = max(excess.get(one.class_name, 0.0), beyond)
    return tuple(
        sorted(
            findings,
            key=lambda one: (
                not one.is_confirmed,
                -excess.get(one.class_name, 0.0),
                one.class_name,
                KIND_ORDER.index(one.kind),
                one.finding_id,
            ),
        )
    )
