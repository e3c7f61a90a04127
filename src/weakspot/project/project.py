"""A project as people use it: the stages of the loop as methods. The command line calls the same."""

from collections.abc import Sequence
from pathlib import Path

from weakspot.core.needs import Material
from weakspot.core.preflight import PreflightCheck
from weakspot.core.repairs import RepairPlan
from weakspot.core.roles import Captioner, Classifier, Embedder, ImageGenerator
from weakspot.core.run import RunRecord, StageProgress, no_stage_progress
from weakspot.core.samples import SampleSet
from weakspot.core.slices import DataUse
from weakspot.generation.caption_log import captions_sentence
from weakspot.generation.counterfactuals import (
    CounterfactualRequest,
    CounterfactualResult,
    CounterfactualStage,
)
from weakspot.generation.generate import GeneratedFolderFacts, GenerateRequest, generate_images
from weakspot.generation.search_run import SearchCall, SearchRunResult, SearchStage
from weakspot.generation.service.tools import GenerationTools
from weakspot.ingest.source import SampleSource
from weakspot.nearest.images import NearestReport, NearestRequest, NearestStage
from weakspot.pipeline import loop
from weakspot.pipeline.changed_settings import with_engine, with_methods, with_phrases
from weakspot.pipeline.class_findings import ask_classes, tell_classes
from weakspot.pipeline.hypotheses import ask
from weakspot.pipeline.ingestion import IngestSummary
from weakspot.pipeline.ledger import Ledger
from weakspot.pipeline.method_choice import CHOICE_STAGE, check_methods, choose_methods
from weakspot.pipeline.models.assistants import witness_notes
from weakspot.pipeline.models.run_models import RunModels
from weakspot.pipeline.naming import describe_slices
from weakspot.pipeline.phrase_answers import HypothesisReport
from weakspot.pipeline.preparation import EmbedSummary, Prepared
from weakspot.pipeline.reporting import write_report
from weakspot.pipeline.settings import Settings
from weakspot.pipeline.settings_file import load_settings
from weakspot.pipeline.verdicts import Asking, open_ledger
from weakspot.pipeline.witnessed_names import with_witnessed_names
from weakspot.pipeline.worth_naming import confirmed_without_words
from weakspot.project.new_settings import recommended_settings, with_inputs, write_settings
from weakspot.project.session import ProjectSession
from weakspot.repair.advice.stage import Advisor
from weakspot.repair.stage import RepairRequest, RepairStage
from weakspot.repair.synthetic_samples import with_synthetic
from weakspot.store.project import ProjectStore

REPAIRED = ("repairs", "notes", "advice")


class Project(ProjectSession):
    """A folder with settings, samples, embeddings and runs.

    Args:
        folder: the project folder.
        settings: its settings.
        classifier: a ready classifier, instead of the configured one.
        embedder: a ready embedder, instead of the configured one.
        source: a ready source of samples, instead of the configured one.
        progress: told how far every stage is.
    """

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

    def ingest(self) -> IngestSummary:
        """Read the samples: hash, examine, quarantine what is broken, assign splits."""
        return self._ingest(None)

    def _check_methods(self, models: RunModels) -> None:
        """Refuse methods that cannot work, before anything long is read."""
        with self.reading():
            check_methods(self.settings, self._source(), has_own_embedder=models.has_own_embedder)

    def _source(self) -> SampleSource:
        return self._given_source or loop.open_data(
            self.settings.data, self.folder, self.settings.boxes
        )

    def _ingest(self, models: RunModels | None) -> IngestSummary:
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
        return summary

    def embed(self) -> EmbedSummary:
        """Compute embeddings, and predictions if there is a classifier; only new samples cost time."""
        return self.prepared().summary

    def samples(self, record: RunRecord | None = None) -> SampleSet:
        """Return all samples with predictions, embeddings and the columns that the slices of a run read, computing missing ones."""
        return self.prepared(record).samples

    def discover(self) -> RunRecord:
        prepared = self.prepared()
        self._note_choice(prepared)
        record = self._new_record(prepared.inputs)
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
        with self._clock.stage("describe") as facts:
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

    def _note_choice(self, prepared: Prepared) -> None:
        """Say which methods can work with what there is; refuse if none can."""
        with self._clock.stage(CHOICE_STAGE) as facts:
            material = Material.of(prepared.samples)
            said = [choose_methods(self.settings, material).sentence, self._source_note()]
            facts["summary"] = " ".join(part for part in said if part)

    def _source_note(self) -> str:
        tables = self.store.current_tables()
        return "" if tables is None else str(tables.facts.get("source_note", ""))

    def verify(self, run_id: str | None = None) -> RunRecord:
        """Measure the slices of a run (the newest by default) on the confirmation half."""
        return self._verify(self.run_record(run_id))

    def _verify(self, record: RunRecord) -> RunRecord:
        with self._clock.stage("verify") as facts:
            record = self._measure(record)
            facts["summary"] = (
                f"{len(record.published())} of {len(record.evidence)} slices confirmed"
            )
        return self._save(record)

    def _measure(self, record: RunRecord) -> RunRecord:
        prepared = self.prepared(record)
        halves = prepared.halves(self.settings, self.criterion, slices=record.slices)
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

    def repair(self, run_id: str | None = None, request: RepairRequest | None = None) -> RunRecord:
        """Retrain the last layer for the confirmed slices of a run, or as a plan says, beside its baselines."""
        asked = request or RepairRequest()
        record = self.run_record(run_id) if asked.plan is None else self._plan(asked.plan)
        return self._save(self._repair(record, asked), only=REPAIRED)

    def _repair(self, record: RunRecord, asked: RepairRequest) -> RunRecord:
        prepared = self._with_generated(record)
        with self._clock.stage("repair") as facts:
            stage = RepairStage(
                record=record,
                prepared=prepared,
                settings=self.settings,
                criterion=self.criterion,
                store=self.store,
                progress=self._progress,
            )
            record = stage.run(asked)
            facts["summary"] = (
                f"{sum(bool(result.arms) for result in record.repairs)} repairs measured"
            )
        with self._clock.stage("advise") as facts:
            record = Advisor(record, prepared, self.settings, self.criterion, self.folder).run()
            facts["summary"] = f"{len(record.advice)} things to do"
        return record

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
        record = self._new_record({})
        prepared = self.prepared(record.model_copy(update={"slices": plan.slices}))
        found_on = DataUse.of(prepared.halves(self.settings, self.criterion)[0][0])
        slices = tuple(found.model_copy(update={"found_on": found_on}) for found in plan.slices)
        record = record.model_copy(update={"slices": slices, "inputs": prepared.inputs})
        return self._measure(record)

    def report(self, run_id: str | None = None) -> tuple[Path, ...]:
        """Write the report of a run; the HTML file comes first."""
        record = self.run_record(run_id)
        prepared = self.prepared(record)
        with self.reading():
            return write_report(
                record,
                prepared.samples,
                self.settings,
                self.criterion,
                self.store,
                halves=prepared.halves(self.settings, self.criterion, slices=record.slices),
                asked=self.asked(),
            )

    def hypothesis(self, class_name: str, phrases: Sequence[str]) -> HypothesisReport:
        """Put a person's phrases to the samples of a class; every phrase counts as a look at the confirmation half."""
        return ask(
            self.prepared(),
            self.settings,
            self.criterion,
            self.store,
            class_name=class_name,
            phrases=phrases,
        )

    def nearest(self, request: NearestRequest) -> NearestReport:
        """Return the images nearest to a phrase or an image, for looking; predictions are told of the discovery half only."""
        stage = NearestStage(
            prepared=self.prepared(),
            settings=self.settings,
            criterion=self.criterion,
            progress=self.progress_of("index"),
        )
        with self.reading():
            return stage.run(request)

    def counterfactual(
        self, request: CounterfactualRequest, *, generator: ImageGenerator | None = None
    ) -> CounterfactualResult:
        """Draw images of a class with one thing changed, and measure how much more often the classifier fails."""
        return CounterfactualStage(tools=self.generation_tools("draw", generator=generator)).run(
            request
        )

    def generate(
        self, folder: Path, request: GenerateRequest, run_id: str | None = None
    ) -> GeneratedFolderFacts:
        record = None if request.captions else self.run_record(run_id)
        return generate_images(self.generation_tools("draw"), folder, request, record=record)

    def search(
        self,
        call: SearchCall,
        *,
        generator: ImageGenerator | None = None,
        captioner: Captioner | None = None,
    ) -> SearchRunResult:
        """Search for captions on whose images the classifier fails more often than on images of the class alone."""
        return SearchStage(
            tools=self.generation_tools("search", generator=generator), captioner=captioner
        ).run(call)

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

    def run(self) -> RunRecord:
        """Do the whole loop up to the repair; finished work of earlier runs is taken, not repeated."""
        self._models = self._new_models()
        self._check_methods(self._models)
        checks = self._check_before(self._source(), self._models)
        summary = self._ingest(self._models)
        record = self._verify(self._with_checks(self.discover(), checks, summary))
        return self._save(self._repair(record, RepairRequest(is_required=False)), only=REPAIRED)

    def preflight(self) -> tuple[PreflightCheck, ...]:
        """Say in seconds whether classifier, labels, splits and files fit together, as far as that is known by now."""
        return self._check_now(self._source(), self._new_models())
