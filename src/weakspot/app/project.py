"""A project as people use it: the stages of the loop as methods. The command line calls the same."""

import os
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path

from weakspot.app import loop
from weakspot.app.attribute_edit_log import AttributeEditFile
from weakspot.app.config import (
    SETTINGS_FILE,
    DataSettings,
    PartSettings,
    Settings,
    load_settings,
    with_engine,
    with_methods,
    with_phrases,
)
from weakspot.app.counterfactuals import CounterfactualRequest, CounterfactualResult, CounterfactualStage
from weakspot.app.drawing_tools import DrawingTools
from weakspot.app.guess import classifier_settings
from weakspot.app.hypothesising import HypothesisReport, ask
from weakspot.app.ingesting import IngestSummary
from weakspot.app.nearest_pictures import NearestReport, NearestRequest, NearestStage
from weakspot.app.preparation import EmbedSummary, Preparation, Prepared
from weakspot.app.records import StageClock, finished, new_record
from weakspot.app.repairing import RepairRequest, RepairStage
from weakspot.app.reporting import write_report
from weakspot.app.searching import SearchCall, SearchOutcome, SearchStage
from weakspot.app.sweeping import sweep_synthetic
from weakspot.app.synthetic_samples import with_synthetic
from weakspot.core.errors import ConfigError, StoreError
from weakspot.core.failures import FailureCriterion, describe_criterion
from weakspot.core.repairs import RepairPlan
from weakspot.core.roles import Captioner, Classifier, Embedder, ImageGenerator
from weakspot.core.run import Progress, RunRecord, StageProgress, no_stage_progress
from weakspot.core.samples import SampleSet
from weakspot.core.slices import DataUse
from weakspot.ingest.source import SampleSource
from weakspot.store.project import ProjectStore

PATIENCE_SECONDS = 30.0


class Project:
    """A folder with settings, samples, vectors and runs.

    Args:
        folder: the project folder.
        settings: its settings.
        classifier: a ready classifier, instead of the configured one.
        embedder: a ready embedder, instead of the configured one.
        source: a ready source of samples, instead of the configured one.
        progress: told how far every stage is.
    """

    def __init__(
        self,
        folder: Path,
        settings: Settings,
        *,
        classifier: Classifier | None = None,
        embedder: Embedder | None = None,
        source: SampleSource | None = None,
        progress: StageProgress = no_stage_progress,
    ) -> None:
        self.folder = folder
        self.settings = settings
        self._given_classifier = classifier
        self._given_embedder = embedder
        self._given_source = source
        self._progress = progress
        self._clock = StageClock()
        self._made: dict[str, Prepared] = {}
        self._store: ProjectStore | None = None

    @classmethod
    def open(  # noqa: PLR0913 - everything that can take the place of what is configured
        cls,
        folder: Path | str,
        *,
        classifier: Classifier | None = None,
        embedder: Embedder | None = None,
        source: SampleSource | None = None,
        methods: Sequence[str] = (),
        engine: str = "",
        progress: StageProgress = no_stage_progress,
    ) -> "Project":
        """Open a folder that holds weakspot.toml; methods and engine, if given, take the place of the configured ones."""
        path = Path(folder)
        settings = with_engine(with_methods(load_settings(path), methods), engine)
        return cls(path, settings, classifier=classifier, embedder=embedder, source=source, progress=progress)

    @classmethod
    def create(
        cls,
        folder: Path | str,
        *,
        data: str | SampleSource = "",
        classifier: str | Classifier = "",
        embedder: Embedder | None = None,
        settings: Settings | None = None,
        overwrite: bool = False,
    ) -> "Project":
        """Write weakspot.toml into a folder and open it.

        Args:
            folder: made if need be.
            data: where the samples are, or a ready source.
            classifier: what `weakspot init --classifier` takes, or a ready classifier.
            embedder: a ready embedder.
            settings: settings to start from.
            overwrite: replace an existing weakspot.toml.
        """
        from weakspot.app.template import commented_settings

        path = Path(folder)
        chosen = _with_inputs(settings or Settings(), path, data, classifier)
        target = path / SETTINGS_FILE
        if target.exists() and not overwrite:
            raise ConfigError(
                f"There is a {SETTINGS_FILE} already.", where=str(target), fix="Edit it, or overwrite it with --force."
            )
        try:
            path.mkdir(parents=True, exist_ok=True)
            target.write_text(commented_settings(chosen), encoding="utf-8")
        except OSError as error:
            raise ConfigError(f"The project folder cannot be written: {error.strerror}.", where=str(path)) from error
        ready_source = None if isinstance(data, str) else data
        ready_classifier = None if isinstance(classifier, str) else classifier
        return cls(path, chosen, classifier=ready_classifier, embedder=embedder, source=ready_source)

    @property
    def settings_path(self) -> Path:
        """Return where the settings are."""
        return self.folder / SETTINGS_FILE

    @property
    def store(self) -> ProjectStore:
        """Return the project's data on disk, the same object every time; nothing is there before the first ingest."""
        if self._store is None:
            self._store = ProjectStore.open(self.folder)
        return self._store

    def ingest(self) -> IngestSummary:
        """Read the samples: hash, examine, quarantine what is broken, assign splits."""
        with self._clock.stage("ingest") as facts:
            store = self._store = ProjectStore.create(self.folder) if self._store is None else self._store
            source = self._given_source or loop.open_data(self.settings.data, self.folder, self.settings.boxes)
            summary = loop.ingest_samples(store, source, self.settings, self.told("ingest"))
            facts["summary"] = f"{summary.n_samples} samples, {summary.n_quarantined} quarantined"
            facts["was_cached"] = summary.was_cached
        return summary

    def embed(self) -> EmbedSummary:
        """Compute vectors, and outcomes if there is a classifier; only new samples cost time."""
        return self.prepared().summary

    def samples(self, record: RunRecord | None = None) -> SampleSet:
        """Return all samples with outcomes, vectors, and the columns that the slices of a run read; what is missing is computed."""
        return self.prepared(record).samples

    def discover(self) -> RunRecord:
        """Start a run: look for slices on the discovery half and name them."""
        prepared = self.prepared()
        record = self._new_record(prepared.inputs)
        with self._clock.stage("discover") as facts:
            record = loop.discover_slices(
                record, prepared.samples, self.settings, self._criterion, prepared.assistants, progress=self.told("discover")
            )
            facts["summary"] = f"{len(record.slices)} candidate slices"
        with self._clock.stage("describe") as facts:
            record = loop.describe_slices(record, prepared.samples, self.settings, self._criterion, prepared.assistants)
            facts["summary"] = f"{sum(bool(found.names) for found in record.slices)} slices named"
        return self._saved(record)

    def verify(self, run_id: str | None = None) -> RunRecord:
        """Measure the slices of a run (the newest by default) on the confirmation half."""
        record = self.run_record(run_id)
        prepared = self.prepared(record)
        with self._clock.stage("verify") as facts:
            record = loop.verify_slices(record, prepared.samples, self.settings, self._criterion)
            facts["summary"] = f"{len(record.published())} of {len(record.evidence)} slices confirmed"
        return self._saved(record)

    def repair(self, run_id: str | None = None, request: RepairRequest | None = None) -> RunRecord:
        """Retrain the last layer for the confirmed slices of a run, or as a plan says, beside its baselines."""
        asked = request or RepairRequest()
        record, prepared = self._repairable(run_id, asked.plan)
        with self._clock.stage("repair") as facts:
            stage = RepairStage(
                record=record,
                prepared=prepared,
                settings=self.settings,
                criterion=self._criterion,
                store=self.store,
                progress=self._progress,
            )
            record = stage.run(asked)
            facts["summary"] = f"{sum(bool(outcome.arms) for outcome in record.repairs)} repairs measured"
        return self._saved(record, only=("repairs", "notes"))

    def sweep(self, folder: Path, run_id: str | None = None) -> tuple[Path, ...]:
        """Try several weights and numbers of names of a synthetic repair; write the trade-off into a folder, the page first."""
        record, prepared = self._repairable(run_id, None)
        return sweep_synthetic(folder, record, prepared, self.settings, self._criterion, self.told("sweep"))

    def repairable(self, run_id: str) -> tuple[RunRecord, Prepared]:
        """Return a run and everything that repairs of it read."""
        return self._repairable(run_id, None)

    def _repairable(self, run_id: str | None, plan: RepairPlan | None) -> tuple[RunRecord, Prepared]:
        """Return the run to repair and its samples, with generated ones if a folder is set; a plan starts a run of its own."""
        record = self.run_record(run_id) if plan is None else self._planned(plan)
        prepared = self.prepared(record)
        if not self.settings.repair.synthetic:
            return record, prepared
        folder = self.folder / self.settings.repair.synthetic
        return record, with_synthetic(
            prepared, folder, settings=self.settings, store=self.store, progress=self.told("generated pictures")
        )

    def _planned(self, plan: RepairPlan) -> RunRecord:
        """Return a new run whose slices are those of a plan, measured on the confirmation half of this project."""
        record = self._new_record({})
        prepared = self.prepared(record.model_copy(update={"slices": plan.slices}))
        found_on = DataUse.of(loop.halves(prepared.samples, self.settings, self._criterion)[0][0])
        slices = tuple(found.model_copy(update={"found_on": found_on}) for found in plan.slices)
        record = record.model_copy(update={"slices": slices, "inputs": prepared.inputs})
        return loop.verify_slices(record, prepared.samples, self.settings, self._criterion)

    def report(self, run_id: str | None = None) -> tuple[Path, ...]:
        """Write the report of a run; the HTML file comes first."""
        record = self.run_record(run_id)
        prepared = self.prepared(record)
        return write_report(record, prepared.samples, self.settings, self._criterion, self.store)

    def hypothesis(self, class_name: str, phrases: Sequence[str]) -> HypothesisReport:
        """Put a person's phrases to the samples of a class; every phrase counts as a look at the confirmation half."""
        return ask(self.prepared(), self.settings, self._criterion, self.store, class_name=class_name, phrases=phrases)

    def nearest(self, request: NearestRequest) -> NearestReport:
        """Return the pictures nearest to a phrase or a picture, for looking; outcomes are told of the discovery half only."""
        stage = NearestStage(
            prepared=self.prepared(), settings=self.settings, criterion=self._criterion, progress=self.told("index")
        )
        return stage.run(request)

    def counterfactual(self, request: CounterfactualRequest, *, generator: ImageGenerator | None = None) -> CounterfactualResult:
        """Draw pictures of a class with one thing changed, and measure how much more often the classifier fails."""
        return CounterfactualStage(tools=self.drawing_tools("draw", generator=generator)).run(request)

    def search(
        self, call: SearchCall, *, generator: ImageGenerator | None = None, captioner: Captioner | None = None
    ) -> SearchOutcome:
        """Search for captions on whose pictures the classifier fails more often than on pictures of the class alone."""
        return SearchStage(tools=self.drawing_tools("search", generator=generator), captioner=captioner).run(call)

    def drawing_tools(
        self, stage: str, *, generator: ImageGenerator | None = None, record: RunRecord | None = None
    ) -> DrawingTools:
        """Return what commands that draw need; a generator, if given, takes the place of the configured one."""
        return DrawingTools(
            prepared=self.prepared(record),
            settings=self.settings,
            criterion=self._criterion,
            store=self.store,
            generator=generator,
            progress=self.told(stage),
        )

    def prove(self, class_name: str, phrases: Sequence[str]) -> RunRecord:
        """Start a run whose only candidates are phrases, and verify them on the confirmation half of the project's own samples."""
        settings = with_phrases(self.settings, class_name, phrases)
        asked = Project(
            self.folder, settings, classifier=self._given_classifier, embedder=self._given_embedder, progress=self._progress
        )
        record = asked.discover()
        own_notes = tuple(note for note in record.notes if note.class_name == class_name)
        asked._saved(record.model_copy(update={"notes": own_notes}))
        return asked.verify(record.run_id)

    def run(self) -> RunRecord:
        """Do the whole loop up to the repair; finished work of earlier runs is taken, not repeated."""
        self.ingest()
        record = self.discover()
        self.verify(record.run_id)
        return self.repair(record.run_id, RepairRequest(is_required=False))

    @cached_property
    def _criterion(self) -> FailureCriterion:
        return self.settings.failure.criterion()

    def told(self, stage: str) -> Progress:
        """Return the progress callback of a stage."""
        return lambda done, total: self._progress(stage, done, total)

    def run_record(self, run_id: str | None = None) -> RunRecord:
        """Return a run, the newest by default.

        Raises:
            StoreError: if there is none.
        """
        runs = self.store.runs
        record = runs.load(run_id) if run_id else runs.latest()
        if record is None:
            raise StoreError(
                "The project has no run yet.", where=str(self.folder), fix="Run `weakspot discover` or `weakspot run`."
            )
        return record

    def _new_record(self, inputs: dict[str, str]) -> RunRecord:
        criterion = describe_criterion(self._criterion)
        return new_record(self.settings, inputs=inputs, criterion=criterion, after=self.store.runs.run_ids())

    def _saved(self, record: RunRecord, *, only: Sequence[str] = ()) -> RunRecord:
        """Write a run; if only some of its fields are meant, the others stay as they are on disk now."""
        store = self.store
        with store.writing(patience=PATIENCE_SECONDS):
            if only and record.run_id in store.runs.run_ids():
                record = store.runs.load(record.run_id).model_copy(update={name: getattr(record, name) for name in only})
            complete = finished(record, stages=(*record.stages, *self._clock.stages))
            self._clock.stages.clear()
            store.runs.save(complete)
        return complete

    def prepared(self, record: RunRecord | None = None) -> Prepared:
        """Return samples with everything that methods, and the slices of a run, read; made once for the current tables."""
        store = self.store
        tables = store.current_tables()
        key = tables.folder.name if tables else ""
        preparation = Preparation(
            store=store,
            folder=self.folder,
            settings=self.settings,
            classifier=self._given_classifier,
            embedder=self._given_embedder,
            clock=self._clock,
            told=self.told,
        )
        if key not in self._made:
            self._made = {key: preparation.run()}
        with_columns = f"{key} with attributes {AttributeEditFile(store).version_mark()}"
        if with_columns not in self._made and self._reads_attributes(record, self._made[key]):
            self._made = {key: self._made[key], with_columns: preparation.with_attributes(self._made[key])}
        return self._made.get(with_columns, self._made[key])

    def _reads_attributes(self, record: RunRecord | None, prepared: Prepared) -> bool:
        """Return whether a configured method cuts by attributes, or a slice of the run reads a column that is not there yet."""
        if {"attributes", "all"} & set(self.settings.discover.methods):
            return True
        needed = {name for found in (record.slices if record else ()) for name in found.rule.columns}
        return not needed <= set(prepared.samples.dataset.metadata_names)


def _with_inputs(settings: Settings, folder: Path, data: str | SampleSource, classifier: str | Classifier) -> Settings:
    changes: dict[str, DataSettings | PartSettings] = {}
    if isinstance(data, str) and data:
        changes["data"] = settings.data.model_copy(update={"source": _from_folder(data, folder)})
    if isinstance(classifier, str) and classifier:
        guessed = classifier_settings(classifier)
        options = {key: _from_folder(value, folder) if isinstance(value, str) else value for key, value in guessed.options.items()}
        changes["classifier"] = guessed.model_copy(update={"options": options})
    return settings.model_copy(update=changes)


def _from_folder(text: str, folder: Path) -> str:
    """Return an existing path as seen from the project folder, and anything else unchanged."""
    if not Path(text).exists():
        return text
    return Path(os.path.relpath(text, folder)).as_posix()
