"""What is asked of whole classes beside slices, and what becomes of it.

Which questions there are follows from labels and columns alone, so all evaluation samples answer them. They are a family of the run's
batch in the ledger with a small, fixed part of what it may spend. A shift compares images without predictions and is a family of its
own (docs/decisions/026).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from weakspot.core.class_findings import ClassFinding, ClassFindingKind
from weakspot.core.dataset import Split
from weakspot.core.evidence import Verdict
from weakspot.core.failures import FailureCriterion
from weakspot.core.given_labels import as_given
from weakspot.core.run import RunRecord
from weakspot.core.samples import SampleSet
from weakspot.core.statistics import Correction, adjusted_p_values
from weakspot.pipeline.halves import Halves, used_rows
from weakspot.pipeline.ledger import Answer, AskedTest, Ledger
from weakspot.pipeline.preparation import CLIP, Prepared
from weakspot.pipeline.settings import Settings
from weakspot.pipeline.shift_names import ShiftNamer
from weakspot.pipeline.wiring import build_describer, build_verifier
from weakspot.verify.classes.confused import ask_confused
from weakspot.verify.classes.drift import ask_drift
from weakspot.verify.classes.material import ClassMaterial
from weakspot.verify.classes.shift import SMALLEST_AUC, ask_shift
from weakspot.verify.classes.whole import ask_whole
from weakspot.verify.classes.wording import shift_sentence, untrained_sentence

SPACE = CLIP
"""The classifier's own features would differ between training and evaluation for any classifier that has learnt its training set."""
SHIFT_PART = 0.2
LEAST_GAP = 0.1
SUSPECTED_P = 0.05
MOST_SUSPECTED = 10
FEWEST_THROUGHOUT, SHARE_THROUGHOUT = 3, 2 / 3
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
    min_gap: float = LEAST_GAP
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
        )[:MOST_SUSPECTED]
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
            1.0 if one.p_value is None or one.rate < SMALLEST_AUC else one.p_value
            for one in self.shifts
        ]
        q_values = adjusted_p_values(p_values, correction=self.correction, share=SHIFT_PART)
        found = [
            one.model_copy(update={"q_value": float(q_value), "verdict": Verdict.CONFIRMED})
            for one, q_value in zip(self.shifts, q_values, strict=True)
            if q_value <= self.alpha
        ]
        is_throughout = len(found) >= max(FEWEST_THROUGHOUT, SHARE_THROUGHOUT * len(self.shifts))
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
        min_gap=max(LEAST_GAP, float(getattr(verifier, "min_gap", 0.0))),
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
