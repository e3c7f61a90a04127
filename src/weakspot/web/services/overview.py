"""The first page: how the classifier does, its runs, and where it does worst; every figure is one of a run's record."""

import inspect
from collections.abc import Mapping
from dataclasses import replace
from pathlib import PurePath
from typing import Any, Literal

import numpy as np

from weakspot.core.arrays import IntArray
from weakspot.core.dataset import Dataset, Split, Task
from weakspot.core.errors import ConfigError, WeakspotError
from weakspot.core.evidence import Evidence, Share
from weakspot.core.failures import describe_criterion, predicted_classes
from weakspot.core.registry import part_class, registered
from weakspot.core.run import ClassNote, MethodRecord, RunRecord
from weakspot.core.samples import SampleSet
from weakspot.core.slices import FailureSlice
from weakspot.report.document import ClassAccuracy, DataFacts, ReportDocument, build_document
from weakspot.report.findings import SliceSentences, slice_sentences
from weakspot.report.first_answer import FirstAnswer
from weakspot.run.halves import evaluated_splits
from weakspot.run.ingestion import FIX
from weakspot.run.reporting import data_facts
from weakspot.run.settings import Settings
from weakspot.run.wiring import build_part, buildable
from weakspot.web.services.samples import ShownSample, shown_samples
from weakspot.web.services.slices import look_at
from weakspot.web.services.view import View
from weakspot.web.services.workspace import Workspace

REPORT_FILE = "report.html"


class RunView(View):
    """One run.

    Args:
        run_id: time and hash.
        started: ISO 8601, UTC.
        command: what was asked for.
        n_slices: how many were found.
        n_published: how many of them were confirmed and not dismissed.
        is_repaired: whether a repair was measured.
        has_report: whether its report was written.
    """

    run_id: str
    started: str
    command: str
    n_slices: int
    n_published: int
    is_repaired: bool
    has_report: bool


def run_list(workspace: Workspace) -> list[RunView]:
    """Return all runs, newest first; every one is read once for each state that it is in."""
    return [
        _with_report(workspace, workspace.make_of_run(run_id, "in short", _in_short))
        for run_id in workspace.project.store.runs.run_ids()[::-1]
    ]


def has_report(workspace: Workspace, run_id: str) -> bool:
    return (workspace.project.store.runs.folder / run_id / REPORT_FILE).is_file()


def _in_short(record: RunRecord) -> RunView:
    return RunView(
        run_id=record.run_id,
        started=record.started,
        command=_shown_command(record.command),
        n_slices=len(record.slices),
        n_published=len(record.published()),
        is_repaired=any(result.arms for result in record.repairs),
        has_report=False,
    )


def _shown_command(command: str) -> str:
    """Return what was typed, of paths on the server only the last part."""
    return " ".join(PurePath(word).name if "/" in word else word for word in command.split())


def _with_report(workspace: Workspace, run: RunView) -> RunView:
    return run.model_copy(update={"has_report": has_report(workspace, run.run_id)})


class MethodChoice(View):
    """A method that can be chosen, or why not.

    Args:
        name: registered name.
        sentence: what it does.
        is_configured: whether weakspot.toml names it.
        why_not: why it cannot be used here; empty if it can.
    """

    name: str
    sentence: str
    is_configured: bool
    why_not: str = ""


def discoverer_choices(settings: Settings) -> list[MethodChoice]:
    """Return the methods that failures can be looked for with; baselines are left out."""
    given = settings.discover.parameters
    able = buildable("discoverers", given)
    configured = settings.discover.methods
    found = []
    for name in registered("discoverers"):
        part = _part("discoverers", name)
        if part is None or (
            name in able
            and build_part("discoverers", name, given.get(name, {}), where=name).is_baseline
        ):
            continue
        why_not = "" if name in able else "It needs options that weakspot.toml does not give."
        is_configured = name in configured or ("all" in configured and not why_not)
        found.append(
            MethodChoice(
                name=name,
                sentence=first_sentence(part),
                is_configured=is_configured,
                why_not=why_not,
            )
        )
    return found


def first_sentence(part: Any) -> str:
    """Return what a part does, from the first paragraph of its own documentation.

    >>> first_sentence(int)
    'int([x]) -> integer int(x, base=10) -> integer'
    """
    text = inspect.getdoc(part) or ""
    return " ".join(text.split("\n\n", maxsplit=1)[0].split())


def _part(role: str, name: str) -> Any:
    try:
        return part_class(role, name)
    except ConfigError:
        return None


N_WORST = 6
N_IMAGES = 8


Strips = dict[Literal["fails", "rest"], list[ShownSample]]
"""What a finding looks like: failures, deepest inside first, and samples of the rest of the class, evenly over all."""


class WorstImages(View):
    """Images of each of the worst slices.

    Args:
        tables: what row numbers refer to.
        slices: images by slice id; none for a slice of other samples than the project holds now.
    """

    tables: str
    slices: dict[str, Strips]


def worst_images(workspace: Workspace, run_id: str) -> WorstImages:
    """Return failures of the worst slices of a run, deepest inside first.

    Raises:
        StoreError: if there is no such run.
    """

    def choose(record: RunRecord) -> WorstImages:
        shown = {
            found.slice_id: _strips(workspace, record, found)
            for found, _ in record.published()[:N_WORST]
        }
        return WorstImages(tables=workspace.tables_key, slices=shown)

    return workspace.make_of_run(run_id, "worst images", choose)


def _strips(workspace: Workspace, record: RunRecord, found: FailureSlice) -> Strips:
    try:
        looked = look_at(workspace, record, found)
    except WeakspotError:
        return {"fails": [], "rest": []}
    fails = np.flatnonzero(looked.inside & looked.problem.failed)[:N_IMAGES]
    outside = np.flatnonzero(~looked.inside)
    rest = np.unique(np.linspace(0, len(outside) - 1, min(N_IMAGES, len(outside))).astype(np.int64))
    dataset, problem = looked.samples.dataset, looked.problem
    return {
        "fails": shown_samples(dataset, problem, fails),
        "rest": shown_samples(dataset, problem, outside[rest]),
    }


MAX_SHOWN = 30
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
    return np.sort(np.argsort(-blame, kind="stable")[:MAX_SHOWN])


def _chunks(rows: IntArray) -> list[IntArray]:
    return [rows[start : start + CHUNK_ROWS] for start in range(0, len(rows), CHUNK_ROWS)] or [rows]


MAX_NOTES = 200


class ConfirmedSlice(View):
    """A confirmed slice: its name, what was measured on the confirmation half, and what the report says of it."""

    title: str
    evidence: Evidence
    words: SliceSentences


class MethodView(MethodRecord, View):
    """What one method did, and how many of its slices were confirmed."""

    n_confirmed: int


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
    classes: tuple[ClassAccuracy, ...]
    worst: list[ConfirmedSlice]
    n_published: int
    methods: list[MethodView]
    notes: tuple[ClassNote, ...]


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
    splits: Mapping[str, int]
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
        classes=card.per_class,
        worst=confirmed_slices(record)[:N_WORST],
        n_published=len(document.findings),
        methods=_methods(document),
        notes=record.notes[:MAX_NOTES],
    )


def confirmed_slices(record: RunRecord) -> list[ConfirmedSlice]:
    return [
        ConfirmedSlice(
            title=found.title, evidence=entry, words=slice_sentences(found, entry, record)
        )
        for found, entry in record.published()
    ]


def _methods(document: ReportDocument) -> list[MethodView]:
    confirmed = [finding.slice_.method for finding in document.findings]
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
        splits=facts.n_by_split,
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
