"""The model card of a run: what was evaluated, how well it does, where it fails, what was repaired and what is not known."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from weakspot.core.evidence import Share, Verdict
from weakspot.core.repairs import GroupKind
from weakspot.core.run import RunRecord
from weakspot.report import wording
from weakspot.report.findings import Finding, RefusedSlice
from weakspot.report.repairs import RepairSection, slice_warning, worse_sentences

MAX_NAMED = 8
LIMITS = (
    "A slice is proven for the samples it was measured on, and for others as far as they are drawn from the same source.",
    "What was not found is not proven to be absent: kinds that are too few, or that no method can tell apart, stay unseen.",
    "Words for slices are proposals; the rule that decides who is a member, and the figures, are what was tested.",
    "Causes are read off the training samples where there are any; they are probable, not proven.",
)


@dataclass(frozen=True, kw_only=True)
class DataFacts:
    """What is known of the data beside the run's own record.

    Args:
        name: of the project.
        n_by_split: samples of every split that has any.
        n_classes: how many classes there are.
        class_names: their names.
        n_unlabelled: samples without a label.
        n_quarantined: samples set aside because they are broken.
        task: how many labels a sample can have, in words.
        evaluated_splits: where slices were looked for.
    """

    name: str = "the project"
    n_by_split: Mapping[str, int] = field(default_factory=dict)
    n_classes: int = 0
    class_names: tuple[str, ...] = ()
    n_unlabelled: int = 0
    n_quarantined: int = 0
    task: str = "single-label"
    evaluated_splits: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class ClassAccuracy:
    """How often the classifier is right on one class."""

    class_name: str
    right: Share


@dataclass(frozen=True, kw_only=True)
class ModelCard:
    """What a model card says, in its order.

    Args:
        classifier: id of the classifier.
        data: what is known of the data; None if only the record is.
        evaluation: what was evaluated, in sentences.
        criterion: what counts as a failure.
        accuracy: share of evaluated samples without a failure; None if it was not measured.
        per_class: the same by class, lowest first.
        worst: the finding with the largest gap; None if nothing was confirmed.
        known_failures: confirmed slices in words, largest gap first.
        repairs: what was repaired and what got worse, in sentences.
        caveats: what was not tested, set aside or doubted.
        limits: what the method cannot say.
    """

    classifier: str
    data: DataFacts | None
    evaluation: tuple[str, ...]
    criterion: str
    accuracy: Share | None
    per_class: tuple[ClassAccuracy, ...]
    worst: Finding | None
    known_failures: tuple[str, ...]
    repairs: tuple[str, ...]
    caveats: tuple[str, ...]
    limits: tuple[str, ...] = LIMITS

    @property
    def accuracy_sentence(self) -> str:
        """Return how often it is right, in a sentence; empty if that was not measured."""
        return "" if self.accuracy is None else f"It is right on {_share(self.accuracy)}."

    @property
    def worst_sentence(self) -> str:
        if self.worst is None:
            return "No slice was confirmed, so there is no worst one."
        evidence = self.worst.evidence
        return (
            f"“{self.worst.slice_.title}”: right on {wording.percent(1 - evidence.rate_inside)} of {evidence.n_inside:,}, "
            f"about {round(100 * evidence.headline_gap)} points below the rest of the class."
        )


def model_card(
    record: RunRecord,
    findings: Sequence[Finding],
    *,
    repairs: Sequence[RepairSection] = (),
    dismissed: Sequence[RefusedSlice] = (),
    data: DataFacts | None = None,
) -> ModelCard:
    facts = record.classifier
    own = [found for found in findings if not found.explained]
    return ModelCard(
        classifier=record.inputs.get("classifier", "the classifier"),
        data=data,
        evaluation=tuple(_evaluation(record, data)),
        criterion=record.criterion or "the answer is wrong",
        accuracy=None
        if facts is None or not facts.n_samples
        else _right(facts.n_failed, facts.n_samples),
        per_class=tuple(
            sorted(class_accuracies(record), key=lambda one: (one.right.value, one.class_name))
        ),
        worst=own[0] if own else None,
        known_failures=tuple(found.sentence for found in own),
        repairs=tuple(_repairs(repairs)),
        caveats=tuple(_caveats(record, findings, dismissed, data)),
    )


def class_accuracies(record: RunRecord) -> tuple[ClassAccuracy, ...]:
    """Return how often the classifier is right on every class, in the order of the record."""
    counts = {} if record.classifier is None else record.classifier.per_class
    return tuple(
        ClassAccuracy(class_name=name, right=_right(n_failed, n_samples))
        for name, (n_samples, n_failed) in counts.items()
    )


def _right(n_failed: int, n_samples: int) -> Share:
    return Share.of(n_samples - n_failed, n_samples)


def _share(share: Share) -> str:
    return f"{wording.percent(share.value)} of {share.total:,} samples ({wording.interval(share.interval)})"


def _evaluation(record: RunRecord, data: DataFacts | None) -> Iterator[str]:
    if data is not None:
        counts = ", ".join(f"{name} {number:,}" for name, number in data.n_by_split.items())
        yield f"{data.n_classes:,} {'class' if data.n_classes == 1 else 'classes'}, {data.task}; samples by split: {counts}."
        yield f"Failures were looked for in {' and '.join(data.evaluated_splits)}: found on one half of it, proven on the other."
    if record.evidence:
        used = record.evidence[0].measured_on
        yield f"Proven on {used.name} ({wording.count(used.n_samples, 'sample')})."


def _repairs(sections: Sequence[RepairSection]) -> Iterator[str]:
    """Yield what the chosen repair did to slices and overall, and what got worse; the report says the rest."""
    for section in sections[:1]:
        n_slices = sum(
            change.kind is GroupKind.SLICE for arm in section.arms[:1] for change in arm.changes
        )
        if section.needs:
            yield "Nothing was retrained: rows to collect and weights for one's own training were listed."
            continue
        n_warnings = sum(bool(slice_warning(arm)) for arm in section.arms[:1])
        yield from section.sentences[: n_warnings + n_slices + 1]
        yield from (sentence for arm in section.arms[:1] for sentence in worse_sentences(arm))
    if len(sections) > 1:
        yield f"{wording.count(len(sections), 'way')} of repairing were compared; the first is the chosen one."


def _caveats(
    record: RunRecord,
    findings: Sequence[Finding],
    dismissed: Sequence[RefusedSlice],
    data: DataFacts | None,
) -> Iterator[str]:
    verdicts = [entry.verdict for entry in record.evidence]
    if n_few := verdicts.count(Verdict.TOO_FEW):
        yield f"{wording.count(n_few, 'slice')} could not be tested: too few samples."
    if n_circular := verdicts.count(Verdict.CIRCULAR):
        yield f"{wording.count(n_circular, 'slice')} could not be tested: defined by what the classifier said."
    if record.notes:
        names = _named([note.class_name for note in record.notes])
        yield f"Nothing, or not everything, could be said of {names}; the report says why."
    if data is not None and data.n_quarantined:
        yield f"{wording.count(data.n_quarantined, 'sample')} set aside as broken took no part."
    if data is not None and data.n_unlabelled:
        yield f"{wording.count(data.n_unlabelled, 'sample')} without a label took no part in the figures."
    doubted = [found.slice_.title for found in findings if found.has_suspect_labels]
    if doubted:
        yield f"Labels look wrong in {_named(doubted)}: there the failures may be the labels'."
    if dismissed:
        yield f"People dismissed {wording.count(len(dismissed), 'slice')}: {_named([one.slice_.title for one in dismissed])}."


def _named(names: Sequence[str]) -> str:
    unique = list(dict.fromkeys(names))
    shown = ", ".join(f"“{name}”" for name in unique[:MAX_NAMED])
    return shown if len(unique) <= MAX_NAMED else f"{shown} and {len(unique) - MAX_NAMED} more"
