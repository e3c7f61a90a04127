"""The first page: how the classifier does, where it does worst, what was tried; every figure is one of the run's record."""

from typing import cast

import numpy as np

from weakspot.app.browsing.confusion import ConfusionView, confusion
from weakspot.app.browsing.run_list import has_report, made_of_run
from weakspot.app.browsing.view import View
from weakspot.app.browsing.workspace import Workspace
from weakspot.app.reporting import data_facts
from weakspot.core.dataset import Task
from weakspot.core.evidence import Interval, Share
from weakspot.core.failures import describe_criterion
from weakspot.core.run import RunRecord
from weakspot.core.samples import SampleSet
from weakspot.report.document import ReportDocument, build_document
from weakspot.report.findings import Finding
from weakspot.report.model_card import DataFacts

N_WORST = 6
MOST_NOTES = 200


class ShareView(View):
    """So many of so many, with its interval."""

    count: int
    total: int
    value: float
    low: float
    high: float

    @classmethod
    def of(cls, share: Share) -> "ShareView":
        """Return a share as pages show it."""
        interval = share.interval
        return cls(count=share.count, total=share.total, value=share.value, low=interval.low, high=interval.high)


class SplitCount(View):
    """How many samples a split has."""

    split: str
    n_samples: int


class ClassAccuracyView(View):
    """How often the classifier is right on a class."""

    title: str
    right: ShareView


class WorstSlice(View):
    """A confirmed slice; rates are of failures, on the confirmation half.

    Args:
        slice_id: which slice.
        title: its name.
        sentence: what it says.
        inside: failures among its members.
        outside: failures among the rest of the class.
        gap: rate inside minus rate outside.
        q_value: corrected for all that was tested.
        cause: the probable cause in words; empty if it was not looked into.
        explained: why it is no finding of its own; empty if it is one.
    """

    slice_id: str
    title: str
    sentence: str
    inside: ShareView
    outside: ShareView
    gap: float
    q_value: float
    cause: str
    explained: str


class MethodView(View):
    """What one method did."""

    method: str
    seconds: float
    n_considered: int
    n_found: int
    n_tested: int
    n_confirmed: int
    note: str


class NoteView(View):
    """What to know about a class."""

    class_title: str
    note: str


class RunFacts(View):
    """What a run says, in the words of its report.

    Args:
        run_id: which run.
        started: ISO 8601, UTC.
        headline: the most important finding.
        summary: the rest in short.
        control: which error rate is held.
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
    headline: str
    summary: list[str]
    control: str
    criterion: str
    accuracy: ShareView | None
    classes: list[ClassAccuracyView]
    worst: list[WorstSlice]
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
        encoder_id: the encoder of the vectors; empty without pictures.
        discovery: accuracy on the half that people look at, None before the first run.
        confusion: what is taken for what, None before the first run and where samples have several labels.
        run: the chosen run, None if there is none yet.
        has_report: whether its report was written.
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
    discovery: ShareView | None
    confusion: ConfusionView | None
    run: RunFacts | None
    has_report: bool


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
    run = made_of_run(workspace, chosen, "facts", run_facts)
    made = cast("OverviewView", workspace.once("overview", lambda: _of_samples(workspace)))
    return made.model_copy(update={"run": run, "has_report": has_report(workspace, chosen)})


def run_facts(record: RunRecord) -> RunFacts:
    """Return what a run says; the words are those of its report."""
    document = build_document(record)
    card = document.card
    return RunFacts(
        run_id=record.run_id,
        started=record.started,
        headline=document.headline,
        summary=list(document.summary),
        control=document.control,
        criterion=record.criterion,
        accuracy=None if card.accuracy is None else ShareView.of(card.accuracy),
        classes=[ClassAccuracyView(title=one.class_name, right=ShareView.of(one.right)) for one in card.per_class],
        worst=[_worst(found) for found in document.findings[:N_WORST]],
        n_published=len(document.findings),
        methods=_methods(document),
        notes=[NoteView(class_title=note.class_name, note=note.note) for note in record.notes[:MOST_NOTES]],
    )


def _worst(found: Finding) -> WorstSlice:
    evidence = found.evidence
    return WorstSlice(
        slice_id=found.slice_id,
        title=found.title,
        sentence=found.sentence,
        inside=_rate(evidence.failures_inside, evidence.n_inside, evidence.rate_inside, evidence.interval_inside),
        outside=_rate(evidence.failures_outside, evidence.n_outside, evidence.rate_outside, evidence.interval_outside),
        gap=evidence.gap,
        q_value=evidence.q_value,
        cause=found.cause[0] if found.cause else "",
        explained=found.explained,
    )


def _rate(count: int, total: int, value: float, interval: Interval) -> ShareView:
    return ShareView(count=count, total=total, value=value, low=interval.low, high=interval.high)


def _methods(document: ReportDocument) -> list[MethodView]:
    confirmed = [found.method for found in document.findings]
    return [
        MethodView(
            method=one.method,
            seconds=one.seconds,
            n_considered=one.n_considered,
            n_found=one.n_found,
            n_tested=one.n_tested,
            n_confirmed=confirmed.count(one.method),
            note=one.note,
        )
        for one in document.methods
    ]


def _of_samples(workspace: Workspace) -> OverviewView:
    """Return what follows from the samples alone."""
    project, prepared = workspace.project, workspace.prepared
    right = _right_on_discovery(workspace)
    splits = tuple(project.settings.verify.splits)
    return _view(
        workspace,
        data_facts(prepared.samples, project.settings, project.store),
        classifier_id=prepared.summary.classifier_id,
        encoder_id=prepared.summary.encoder_id,
        discovery=ShareView.of(right) if right.total else None,
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
    return Share.of(sum(problem.n_right for problem in problems), sum(len(problem.rows) for problem in problems))


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
    discovery: ShareView | None = None,
    table: ConfusionView | None = None,
) -> OverviewView:
    return OverviewView(
        project=facts.name,
        splits=[SplitCount(split=name, n_samples=number) for name, number in facts.n_by_split.items()],
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
    )
