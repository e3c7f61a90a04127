"""The first page: how the classifier does, where it does worst, what was tried; every figure is one of the run's record."""

from dataclasses import replace

import numpy as np

from weakspot.core.arrays import IntArray
from weakspot.core.dataset import Dataset, Split, Task
from weakspot.core.evidence import Evidence, Share
from weakspot.core.failures import describe_criterion, predicted_classes
from weakspot.core.run import MethodRecord, RunRecord
from weakspot.core.samples import SampleSet
from weakspot.pipeline.halves import evaluated_splits
from weakspot.pipeline.missing_images import FIX
from weakspot.pipeline.reporting import data_facts
from weakspot.report.document import ReportDocument, build_document
from weakspot.report.findings import SliceSentences, slice_sentences
from weakspot.report.first_answer import FirstAnswer
from weakspot.report.model_card import DataFacts
from weakspot.web.services.overview.runs import N_WORST, has_report
from weakspot.web.services.view import View
from weakspot.web.services.workspace import Workspace

MOST_SHOWN = 30
CHUNK_ROWS = 100_000
OTHERS = "all other classes"


class ConfusionView(View):
    """Samples by true class (lines) and answer (columns).

    Args:
        titles: classes in order; the last one may stand for all others.
        counts: one line a true class.
        n_samples: how many samples were counted.
        has_others: whether the last title stands for several classes.
        n_classes: how many classes there are.
        measured_on: the data.
    """

    titles: list[str]
    counts: list[list[int]]
    n_samples: int
    has_others: bool
    n_classes: int
    measured_on: str


def confusion(dataset: Dataset, splits: tuple[str, ...]) -> ConfusionView | None:
    """Count answers by true class on labelled samples of some splits; None if a sample can have several labels."""
    if dataset.task is not Task.SINGLE_LABEL:
        return None
    rows = dataset.rows_of(*[Split(name) for name in splits])
    rows = rows[dataset.is_labelled[rows]]
    answered = np.concatenate([predicted_classes(dataset, part) for part in _chunks(rows)]).astype(
        np.int64
    )
    labels, answered = dataset.labels[rows][answered >= 0], answered[answered >= 0]
    shown = _most_confused(labels, answered, dataset.n_classes)
    place = np.full(dataset.n_classes, len(shown), dtype=np.int64)
    place[shown] = np.arange(len(shown))
    side = len(shown) + (len(shown) < dataset.n_classes)
    counts = np.bincount(place[labels] * side + place[answered], minlength=side * side).reshape(
        side, side
    )
    titles = [dataset.class_names[code] for code in shown] + [OTHERS] * (side - len(shown))
    return ConfusionView(
        titles=titles,
        counts=counts.tolist(),
        n_samples=len(labels),
        has_others=side > len(shown),
        n_classes=dataset.n_classes,
        measured_on=" and ".join(splits),
    )


def _most_confused(labels: IntArray, answered: IntArray, n_classes: int) -> IntArray:
    """Return the classes that most wrong answers come from or go to, in the order of the data set."""
    wrong = labels != answered
    blame = np.bincount(labels[wrong], minlength=n_classes) + np.bincount(
        answered[wrong], minlength=n_classes
    )
    return np.sort(np.argsort(-blame, kind="stable")[:MOST_SHOWN])


def _chunks(rows: IntArray) -> list[IntArray]:
    return [rows[start : start + CHUNK_ROWS] for start in range(0, len(rows), CHUNK_ROWS)] or [rows]


MOST_NOTES = 200


class SplitCount(View):
    """How many samples a split has."""

    split: str
    n_samples: int


class ClassAccuracyView(View):
    """How often the classifier is right on a class."""

    title: str
    right: Share


class ConfirmedSlice(View):
    """A confirmed slice: its name, what was measured on the confirmation half, and what the report says of it."""

    title: str
    evidence: Evidence
    words: SliceSentences


class MethodView(MethodRecord, View):
    """What one method did, and how many of its slices were confirmed."""

    n_confirmed: int


class NoteView(View):
    """What to know about a class."""

    class_title: str
    note: str


class RunFacts(View):
    """What a run says, in the words of its report.

    Args:
        run_id: which run.
        started: ISO 8601, UTC.
        answer: what to say first.
        headline: the most important finding.
        summary: the rest in short.
        correction: which error rate is held.
        criterion: what counts as a failure.
        accuracy: as recorded in the run, None if it was not measured.
        classes: accuracy by class, lowest first.
        worst: confirmed slices, largest gap first.
        n_published: how many there are in all.
        methods: what every method did.
        notes: what to know about classes.
    """

    run_id: str
    started: str
    answer: FirstAnswer
    headline: str
    summary: list[str]
    correction: str
    criterion: str
    accuracy: Share | None
    classes: list[ClassAccuracyView]
    worst: list[ConfirmedSlice]
    n_published: int
    methods: list[MethodView]
    notes: list[NoteView]


class OverviewView(View):
    """The first page.

    Args:
        project: name of the project's folder.
        splits: samples of every split that has any.
        n_classes: how many classes there are.
        task: how many labels a sample can have.
        n_unlabelled: samples without a label.
        n_quarantined: samples set aside because they are broken.
        criterion: what counts as a failure, in words.
        classifier_id: the classifier; empty when predictions were given, or nothing was run yet.
        encoder_id: the encoder of the embeddings; empty without images.
        discovery: accuracy on the half that people look at, None before the first run.
        confusion: what is taken for what, None before the first run and where samples have several labels.
        run: the chosen run, None if there is none yet.
        has_report: whether its report was written.
        asked: in words, what held-out samples were asked so far and what is left to spend; empty before the first run.
        missing: what to know if images are not where they were; empty if all are there.
    """

    project: str
    splits: list[SplitCount]
    n_classes: int
    task: str
    n_unlabelled: int
    n_quarantined: int
    criterion: str
    classifier_id: str
    encoder_id: str
    discovery: Share | None
    confusion: ConfusionView | None
    run: RunFacts | None
    has_report: bool
    asked: list[str]
    missing: str


def overview(workspace: Workspace, run_id: str | None = None) -> OverviewView:
    """Return the first page for a run, the newest by default; before the first run nothing is computed for it.

    Raises:
        StoreError: if there is no such run.
    """
    store = workspace.project.store
    known = store.runs.run_ids()
    chosen = run_id or (known[-1] if known else None)
    if chosen is None:
        return _before_any_run(workspace)
    run = _without_places(workspace.make_of_run(chosen, "facts", run_facts), workspace)
    made = workspace.once("overview", lambda: _of_samples(workspace))
    return made.model_copy(
        update={
            "run": run,
            "has_report": has_report(workspace, chosen),
            "asked": workspace.asked(),
            "missing": missing_notice(workspace),
        }
    )


def missing_notice(workspace: Workspace) -> str:
    """Return what people read if images are not where they were; without places on the server's machine."""
    missing = workspace.missing_images()
    return "" if missing is None else f"{missing.sentence} {FIX}"


def _without_places(run: RunFacts, workspace: Workspace) -> RunFacts:
    """Return what a run says with commands that name the project, but not where it lies on the server's machine."""
    above = f"{workspace.project.folder.resolve().parent}/"
    told = tuple(
        replace(
            one, sentence=one.sentence.replace(above, ""), command=one.command.replace(above, "")
        )
        for one in run.answer.to_do
    )
    return run.model_copy(update={"answer": replace(run.answer, to_do=told)})


def run_facts(record: RunRecord) -> RunFacts:
    """Return what a run says; the words are those of its report."""
    document = build_document(record)
    card = document.card
    return RunFacts(
        run_id=record.run_id,
        started=record.started,
        answer=document.answer,
        headline=document.headline,
        summary=list(document.summary),
        correction=document.correction,
        criterion=record.criterion,
        accuracy=card.accuracy,
        classes=[
            ClassAccuracyView(title=one.class_name, right=one.right) for one in card.per_class
        ],
        worst=confirmed_slices(record)[:N_WORST],
        n_published=len(document.findings),
        methods=_methods(document),
        notes=[
            NoteView(class_title=note.class_name, note=note.note)
            for note in record.notes[:MOST_NOTES]
        ],
    )


def confirmed_slices(record: RunRecord) -> list[ConfirmedSlice]:
    return [
        ConfirmedSlice(
            title=found.title, evidence=entry, words=slice_sentences(found, entry, record)
        )
        for found, entry in record.published()
    ]


def _methods(document: ReportDocument) -> list[MethodView]:
    confirmed = [finding.method for finding in document.findings]
    return [
        MethodView(**dict(one), n_confirmed=confirmed.count(one.method)) for one in document.methods
    ]


def _of_samples(workspace: Workspace) -> OverviewView:
    project, prepared = workspace.project, workspace.prepared
    right = _right_on_discovery(workspace)
    splits = tuple(
        split.value for split in evaluated_splits(project.settings, prepared.samples.dataset)
    )
    return _view(
        workspace,
        data_facts(prepared.samples, project.settings, project.store),
        classifier_id=prepared.summary.classifier_id,
        encoder_id=prepared.summary.encoder_id,
        discovery=right if right.total else None,
        table=confusion(prepared.samples.dataset, splits),
    )


def _right_on_discovery(workspace: Workspace) -> Share:
    """Return how often the classifier is right on the discovery half; the same as over all classes, without going through them."""
    half = workspace.discovery
    dataset, rows = half.dataset, half.rows
    if dataset.task is Task.SINGLE_LABEL:
        rows = rows if dataset.predictions is None else rows[dataset.predictions[rows] >= 0]
        return Share.of(len(rows) - int(workspace.criterion.failed(dataset, rows).sum()), len(rows))
    problems = workspace.problems.values()
    return Share.of(
        sum(problem.n_right for problem in problems), sum(len(problem.rows) for problem in problems)
    )


def _before_any_run(workspace: Workspace) -> OverviewView:
    """Return what is known before anything was embedded or classified, perhaps even before samples were read."""
    project = workspace.project
    tables = project.store.current_tables()
    if tables is None:
        return _view(workspace, DataFacts(name=project.folder.resolve().name))
    dataset = tables.dataset()
    every = SampleSet(dataset=dataset, rows=np.arange(len(dataset)))
    return _view(workspace, data_facts(every, project.settings, project.store))


def _view(
    workspace: Workspace,
    facts: DataFacts,
    *,
    classifier_id: str = "",
    encoder_id: str = "",
    discovery: Share | None = None,
    table: ConfusionView | None = None,
) -> OverviewView:
    return OverviewView(
        project=facts.name,
        splits=[
            SplitCount(split=name, n_samples=number) for name, number in facts.n_by_split.items()
        ],
        n_classes=facts.n_classes,
        task=facts.task,
        n_unlabelled=facts.n_unlabelled,
        n_quarantined=facts.n_quarantined,
        criterion=describe_criterion(workspace.criterion),
        classifier_id=classifier_id,
        encoder_id=encoder_id,
        discovery=discovery,
        confusion=table,
        run=None,
        has_report=False,
        asked=[],
        missing=missing_notice(workspace),
    )
