"""A project as people use it: the stages of the loop as methods. The command line calls the same."""

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from functools import cached_property
from pathlib import Path

from weakspot.core.errors import StoreError
from weakspot.core.failures import FailureCriterion, describe_criterion
from weakspot.core.repairs import RepairPlan
from weakspot.core.roles import Captioner, Classifier, Embedder, ImageGenerator
from weakspot.core.run import PreflightCheck, Progress, RunRecord, StageProgress, no_stage_progress
from weakspot.core.samples import Material, SampleSet
from weakspot.core.slices import DataUse
from weakspot.data.remote import reading_as
from weakspot.data.source import SampleSource
from weakspot.generate.caption_log import captions_sentence
from weakspot.generate.counterfactuals import (
    CounterfactualRequest,
    CounterfactualResult,
    measure_counterfactuals,
)
from weakspot.generate.generated_folder import GenerateRequest, GenerateResult, generate_images
from weakspot.generate.project_generator import GenerationTools
from weakspot.generate.search_run import SearchRequest, SearchResult, search_class
from weakspot.project.nearest import NearestRequest, NearestResult, NearestStage
from weakspot.project.new_settings import recommended_settings, with_inputs, write_settings
from weakspot.repair.advice.stage import Advisor
from weakspot.repair.bench import RepairBench
from weakspot.repair.export import forget_repeats, set_repair_aside
from weakspot.repair.stage import RepairRequest, RepairStage
from weakspot.repair.synthetic_samples import with_synthetic
from weakspot.report.wording import checks_sentence
from weakspot.run import loop
from weakspot.run.assistants import witness_notes
from weakspot.run.attributes import AttributeEditFile
from weakspot.run.ingestion import IngestResult
from weakspot.run.ledger import Ledger
from weakspot.run.methods import CHOICE_STAGE, check_methods, choose_methods
from weakspot.run.models import RunModels
from weakspot.run.naming import confirmed_without_words, describe_slices, with_witnessed_names
from weakspot.run.phrase_questions import AskResult, ask
from weakspot.run.preflight.stage import (
    check_after,
    check_before,
    check_ingested,
    check_now,
    merge_checks,
)
from weakspot.run.preparation import EmbedResult, Preparation, Prepared
from weakspot.run.reporting import write_report
from weakspot.run.settings import (
    SETTINGS_FILE,
    Settings,
    load_settings,
    with_engine,
    with_methods,
    with_phrases,
)
from weakspot.run.stage_clock import StageClock, finished, new_record
from weakspot.run.verdicts import Asking, ask_classes, open_ledger, tell_classes
from weakspot.run.wiring import AUTO, remote_reading_for
from weakspot.store.project import ProjectStore
from weakspot.store.runs import RECORD_FILE

PATIENCE_SECONDS = 30.0
PREFLIGHT = "preflight"
REPAIRED = ("repairs", "notes", "advice", "repaired", "earlier_repairs")


class ProjectWorkings:
    """A project folder with what was opened of it so far, the inner steps of the stages, and what other rooms read.

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
        self._models: RunModels | None = None
        self._saved_states: dict[str, tuple[int, int]] = {}

    @property
    def settings_path(self) -> Path:
        return self.folder / SETTINGS_FILE

    @property
    def store(self) -> ProjectStore:
        """Return the project's data on disk, the same object every time; nothing is there before the first ingest."""
        if self._store is None:
            self._store = ProjectStore.open(self.folder)
        return self._store

    @cached_property
    def criterion(self) -> FailureCriterion:
        return self.settings.failure.criterion()

    def progress_of(self, stage: str) -> Progress:
        return lambda done, total: self._progress(stage, done, total)

    @contextmanager
    def telling(self, stage: str) -> Iterator[None]:
        """Say that a stage which cannot be counted is under way, and when it is over."""
        self._progress(stage, 0, 1)
        yield
        self._progress(stage, 1, 1)

    def run_record(self, run_id: str | None = None) -> RunRecord:
        """Return a run, the newest by default.

        Raises:
            StoreError: if there is none.
        """
        runs = self.store.runs
        record = runs.load(run_id) if run_id else runs.latest()
        if record is None:
            raise StoreError(
                "The project has no run yet.",
                where=str(self.folder),
                fix="Run `weakspot discover` or `weakspot run`.",
            )
        return record

    def _new_record(self, prepared: Prepared | None = None) -> RunRecord:
        record = new_record(
            self.settings,
            inputs=prepared.inputs if prepared else {},
            criterion=describe_criterion(self.criterion),
            after=self.store.runs.run_ids(),
        )
        computed_by = prepared.computed_by if prepared else {}
        return record.model_copy(update={"versions": record.versions | computed_by})

    def _save(self, record: RunRecord, *, only: Sequence[str] = ()) -> RunRecord:
        """Write a run; if only some of its fields are meant, the others stay as they are on disk now."""
        store = self.store
        with store.writing(patience=PATIENCE_SECONDS):
            if only and self._was_changed(record.run_id):
                record = store.runs.load(record.run_id).model_copy(
                    update={name: getattr(record, name) for name in only}
                )
            complete = finished(record, stages=(*record.stages, *self._clock.stages))
            self._clock.stages.clear()
            self._saved_states[record.run_id] = _state_of(store.runs.save(complete))
        return complete

    def _was_changed(self, run_id: str) -> bool:
        """Return whether somebody else, such as a person in the browser, wrote a run after this object did."""
        path = self.store.runs.folder / run_id / RECORD_FILE
        return path.exists() and self._saved_states.get(run_id) != _state_of(path)

    def prepared(self, record: RunRecord | None = None) -> Prepared:
        """Return samples with everything that methods, and the slices of a run, read; made once for the current tables."""
        store = self.store
        key = store.tables_key()
        preparation = Preparation(
            store=store, models=self._models or self._new_models(), clock=self._clock
        )
        if key not in self._made:
            with self.reading():
                self._made = {key: preparation.run()}
            # Another set of tables is prepared with models that are built anew: their files may have changed.
            self._models = None
        with_columns = f"{key} with attributes {AttributeEditFile(store).version_mark()}"
        if with_columns not in self._made and self._reads_attributes(record, self._made[key]):
            self._made = {
                key: self._made[key],
                with_columns: preparation.with_attributes(self._made[key]),
            }
        return self._made.get(with_columns, self._made[key])

    def _check_before(self, source: SampleSource, models: RunModels) -> tuple[PreflightCheck, ...]:
        """Look at a few samples before anything long begins."""
        store = self._store = (
            ProjectStore.create(self.folder) if self._store is None else self._store
        )
        with self.reading(), self._clock.stage(PREFLIGHT) as facts, self.telling(PREFLIGHT):
            found = check_before(source, models.classifier, self.settings, store)
            facts["summary"] = checks_sentence(found)
        return found

    def _with_checks(
        self, record: RunRecord, early: Sequence[PreflightCheck], summary: IngestResult
    ) -> RunRecord:
        prepared = self.prepared()
        with self.reading():
            checks = check_after(early, prepared, summary, self.settings)
        return record.model_copy(update={"checks": checks})

    def _check_now(self, source: SampleSource, models: RunModels) -> tuple[PreflightCheck, ...]:
        with self.reading():
            now = check_now(source, models.classifier, self.settings)
            return merge_checks(now, check_ingested(self.folder, models.classifier, self.settings))

    def reading(self) -> AbstractContextManager[None]:
        """Return a block in which this thread reads remote images as the project is configured."""
        return reading_as(remote_reading_for(self.settings))

    def _new_models(self) -> RunModels:
        return RunModels(
            settings=self.settings,
            folder=self.folder,
            ready_classifier=self._given_classifier,
            ready_embedder=self._given_embedder,
            progress_of=self.progress_of,
        )

    def _reads_attributes(self, record: RunRecord | None, prepared: Prepared) -> bool:
        methods = set(self.settings.discover.methods)
        if {"attributes", "all"} & methods:
            return True
        if AUTO in methods and not prepared.samples.spaces:
            # Of a table the columns are all there is, so numbers are cut into bins, too.
            return True
        needed = {
            name for found in (record.slices if record else ()) for name in found.rule.columns
        }
        return not needed <= set(prepared.samples.dataset.metadata_names)

    def _check_methods(self, models: RunModels) -> None:
        """Refuse methods that cannot work, before anything long is read."""
        with self.reading():
            check_methods(self.settings, self._source(), has_own_embedder=models.has_own_embedder)

    def _source(self) -> SampleSource:
        return self._given_source or loop.open_data(
            self.settings.data, self.folder, self.settings.boxes
        )

    def _ingest(self, models: RunModels | None) -> IngestResult:
        """Read the samples; with models, these see the images in the same pass."""
        with self.reading(), self._clock.stage("ingest") as facts:
            store = self._store = (
                ProjectStore.create(self.folder) if self._store is None else self._store
            )
            source = self._source()
            summary = loop.ingest_samples(
                store, source, self.settings, self.progress_of("ingest"), models=models
            )
            facts["summary"] = f"{summary.n_samples} samples, {summary.n_quarantined} quarantined"
            facts["was_cached"] = summary.was_cached
            facts["n_images"] = summary.n_read
        return summary

    def _note_choice(self, prepared: Prepared) -> None:
        """Say which methods can work with what there is; refuse if none can."""
        with self._clock.stage(CHOICE_STAGE) as facts:
            _, said = choose_methods(self.settings, Material.of(prepared.samples))
            tables = self.store.current_tables()
            note = "" if tables is None else str(tables.facts.get("source_note", ""))
            facts["summary"] = " ".join(filter(None, (said, note)))

    def _verify(self, record: RunRecord) -> RunRecord:
        with self._clock.stage("verify") as facts, self.telling("verify"):
            record = self._measure(record)
            facts["summary"] = (
                f"{len(record.published())} of {len(record.evidence)} slices confirmed"
            )
        return self._save(record)

    def _measure(self, record: RunRecord) -> RunRecord:
        prepared = self.prepared(record)
        halves = prepared.halves(self.settings, self.criterion)
        classes = ask_classes(prepared.samples, self.settings, self.criterion)
        asking = Asking(ledger=self.ledger(), source="verify", classes=classes.tests)
        record = loop.verify_slices(
            record,
            prepared.samples,
            self.settings,
            self.criterion,
            halves=halves,
            captions=prepared.assistants.captions,
            asking=asking,
        )
        with self.telling("describe"):
            if unnamed := confirmed_without_words(record):
                given = prepared.samples, self.settings, self.criterion, prepared.assistants
                record = describe_slices(record, *given, halves=halves, only=unnamed)
            record = with_witnessed_names(record, self.settings, prepared.assistants, halves)
            return tell_classes(record, classes, asking.ledger, prepared, self.settings, halves)

    def ledger(self) -> Ledger:
        """Return what the evaluation samples were asked so far, and what is left."""
        return open_ledger(self.store, self.prepared().samples, self.settings)

    def asked(self) -> tuple[str, ...]:
        """Return in plain words what was asked so far and what is left to spend."""
        said = (self.ledger().standing().sentence, captions_sentence(self.store))
        return tuple(filter(None, said))

    def _repair(self, record: RunRecord, asked: RepairRequest) -> RunRecord:
        bench = RepairBench(self._with_generated(record), self.settings)
        record = set_repair_aside(self.store, record)
        with self._clock.stage("repair") as facts:
            stage = RepairStage(
                record=record,
                bench=bench,
                store=self.store,
                progress=self._progress,
            )
            record = forget_repeats(stage.run(asked))
            facts["summary"] = (
                f"{sum(bool(result.arms) for result in record.repairs)} repairs measured"
            )
        with self._clock.stage("advise") as facts, self.telling("advise"):
            record = Advisor(record, bench, self.folder).run()
            facts["summary"] = f"{len(record.advice)} things to do"
        return record

    def _report(self, record: RunRecord) -> tuple[Path, ...]:
        prepared = self.prepared(record)
        with self.reading():
            return write_report(
                record,
                prepared.samples,
                self.settings,
                self.criterion,
                self.store,
                halves=prepared.halves(self.settings, self.criterion),
                asked=self.asked(),
            )

    def repairable(self, run_id: str | None = None) -> tuple[RunRecord, Prepared]:
        """Return a run (the newest by default) and everything that repairs of it read."""
        record = self.run_record(run_id)
        return record, self._with_generated(record)

    def _with_generated(self, record: RunRecord) -> Prepared:
        """Return the samples that repairs of a run read, with generated ones if a folder is set."""
        prepared = self.prepared(record)
        if not self.settings.repair.synthetic:
            return prepared
        folder = self.folder / self.settings.repair.synthetic
        return with_synthetic(
            prepared,
            folder,
            settings=self.settings,
            store=self.store,
            progress=self.progress_of("generated images"),
        )

    def _plan(self, plan: RepairPlan) -> RunRecord:
        record = self._new_record()
        prepared = self.prepared(record.model_copy(update={"slices": plan.slices}))
        found_on = DataUse.of(prepared.halves(self.settings, self.criterion)[0][0])
        slices = tuple(found.model_copy(update={"found_on": found_on}) for found in plan.slices)
        record = record.model_copy(update={"slices": slices, "inputs": prepared.inputs})
        return self._measure(record)

    def generation_tools(
        self,
        stage: str,
        *,
        generator: ImageGenerator | None = None,
        record: RunRecord | None = None,
    ) -> GenerationTools:
        """Return what commands that draw need; a generator, if given, takes the place of the configured one."""
        return GenerationTools(
            prepared=self.prepared(record),
            settings=self.settings,
            criterion=self.criterion,
            store=self.store,
            generator=generator,
            progress=self.progress_of(stage),
        )


def _state_of(path: Path) -> tuple[int, int]:
    """Return what changes whenever a file is written again, which is always under another inode."""
    status = path.stat()
    return status.st_ino, status.st_mtime_ns


class Project(ProjectWorkings):
    """A folder with settings, samples, embeddings and runs.

    Args:
        folder: the project folder.
        settings: its settings.
        classifier: a ready classifier, instead of the configured one.
        embedder: a ready embedder, instead of the configured one.
        source: a ready source of samples, instead of the configured one.
        progress: told how far every stage is.
    """

    def __dir__(self) -> list[str]:
        """Return the public names: what a promise is made of."""
        own = [name for name in vars(Project) if not name.startswith("_")]
        return sorted([*own, "folder", "settings", "run_record"])

    @classmethod
    def open(
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
        return cls(
            path,
            settings,
            classifier=classifier,
            embedder=embedder,
            source=source,
            progress=progress,
        )

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
            settings: settings to start from; by default those of `weakspot init`.
            overwrite: replace an existing weakspot.toml.
        """
        path = Path(folder)
        chosen = with_inputs(settings or recommended_settings(), path, data, classifier)
        write_settings(path, chosen, overwrite=overwrite)
        ready_source = None if isinstance(data, str) else data
        ready_classifier = None if isinstance(classifier, str) else classifier
        return cls(
            path, chosen, classifier=ready_classifier, embedder=embedder, source=ready_source
        )

    def ingest(self) -> IngestResult:
        """Read the samples: hash, examine, quarantine what is broken, assign splits."""
        return self._ingest(None)

    def embed(self) -> EmbedResult:
        """Compute embeddings, and predictions if there is a classifier; only new samples cost time."""
        return self.prepared().summary

    def samples(self, record: RunRecord | None = None) -> SampleSet:
        """Return all samples with predictions, embeddings and the columns that the slices of a run read, computing missing ones."""
        return self.prepared(record).samples

    def discover(self) -> RunRecord:
        """Start a run: look for candidate slices on the discovery half and name them; nothing is confirmed yet."""
        prepared = self.prepared()
        self._note_choice(prepared)
        record = self._new_record(prepared)
        with self._clock.stage("discover") as facts:
            record = loop.discover_slices(
                record,
                prepared.samples,
                self.settings,
                self.criterion,
                prepared.assistants,
                progress=self.progress_of("discover"),
                halves=prepared.halves(self.settings, self.criterion),
            )
            facts["summary"] = f"{len(record.slices)} candidate slices"
        with self._clock.stage("describe") as facts, self.telling("describe"):
            record = describe_slices(
                record,
                prepared.samples,
                self.settings,
                self.criterion,
                prepared.assistants,
                halves=prepared.halves(self.settings, self.criterion),
            )
            named = f"{sum(found.name is not None for found in record.slices)} slices named"
            facts["summary"] = " ".join([named, *witness_notes(prepared.assistants)])
        return self._save(record)

    def verify(self, run_id: str | None = None) -> RunRecord:
        """Measure the slices of a run (the newest by default) on the confirmation half."""
        return self._verify(self.run_record(run_id))

    def repair(self, run_id: str | None = None, request: RepairRequest | None = None) -> RunRecord:
        """Retrain the last layer for the confirmed slices of a run, or as a plan says, beside its baselines."""
        asked = request or RepairRequest()
        record = self.run_record(run_id) if asked.plan is None else self._plan(asked.plan)
        return self._save(self._repair(record, asked), only=REPAIRED)

    def report(self, run_id: str | None = None) -> tuple[Path, ...]:
        """Write the report of a run; the HTML file comes first."""
        return self._report(self.run_record(run_id))

    def ask(self, class_name: str, phrases: Sequence[str]) -> AskResult:
        """Put a person's phrases to the samples of a class; every phrase counts as a look at the confirmation half."""
        return ask(
            self.prepared(),
            self.settings,
            self.criterion,
            self.store,
            class_name=class_name,
            phrases=phrases,
        )

    def nearest(self, request: NearestRequest) -> NearestResult:
        """Return the images nearest to a phrase or an image, for looking; predictions are told of the discovery half only."""
        stage = NearestStage(
            prepared=self.prepared(), settings=self.settings, progress=self.progress_of("index")
        )
        with self.reading():
            return stage.run(request)

    def counterfactual(
        self, request: CounterfactualRequest, *, generator: ImageGenerator | None = None
    ) -> CounterfactualResult:
        """Draw images of a class with one thing changed, and measure how much more often the classifier fails."""
        return measure_counterfactuals(self.generation_tools("draw", generator=generator), request)

    def generate(
        self, folder: Path, request: GenerateRequest, run_id: str | None = None
    ) -> GenerateResult:
        """Generate images of captions, or of what the confirmed slices of a run are called, into a folder that repairs can read."""
        record = None if request.captions else self.run_record(run_id)
        return generate_images(self.generation_tools("draw"), folder, request, record=record)

    def search(
        self,
        request: SearchRequest,
        *,
        generator: ImageGenerator | None = None,
        captioner: Captioner | None = None,
    ) -> SearchResult:
        """Search for captions on whose images the classifier fails more often than on images of the class alone."""
        tools = self.generation_tools("search", generator=generator)
        return search_class(tools, request, captioner)

    def prove(self, class_name: str, phrases: Sequence[str]) -> RunRecord:
        """Start a run whose only candidates are phrases, and verify them on the confirmation half of the project's own samples."""
        settings = with_phrases(self.settings, class_name, phrases)
        asked = self._with_settings(settings)
        record = asked.discover()
        own_notes = tuple(note for note in record.notes if note.class_name == class_name)
        asked._save(record.model_copy(update={"notes": own_notes}))  # noqa: SLF001 - one of the same kind
        return asked.verify(record.run_id)

    def _with_settings(self, settings: Settings) -> "Project":
        return Project(
            self.folder,
            settings,
            classifier=self._given_classifier,
            embedder=self._given_embedder,
            progress=self._progress,
        )

    def run(self, *, writes_report: bool = True) -> RunRecord:
        """Do the whole loop, repair and report included; finished work of earlier runs is taken, not repeated.

        Args:
            writes_report: whether `report.html` is written into the folder, as `weakspot run` does.
        """
        self._models = self._new_models()
        self._check_methods(self._models)
        checks = self._check_before(self._source(), self._models)
        summary = self._ingest(self._models)
        record = self._verify(self._with_checks(self.discover(), checks, summary))
        record = self._save(self._repair(record, RepairRequest(is_required=False)), only=REPAIRED)
        if writes_report:
            self._report(record)
        return record

    def preflight(self) -> tuple[PreflightCheck, ...]:
        """Say in seconds whether classifier, labels, splits and files fit together, as far as that is known by now."""
        return self._check_now(self._source(), self._new_models())
