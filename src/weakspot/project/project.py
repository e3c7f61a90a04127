"""A project as people use it: the stages of the loop as methods. The command line calls the same.

Every name here without an underscore is public, and tab completion shows no other.
"""

import warnings
from collections.abc import Sequence
from pathlib import Path

from weakspot.core.preflight import PreflightCheck
from weakspot.core.roles import Captioner, Classifier, Embedder, ImageGenerator
from weakspot.core.run import RunRecord, StageProgress, no_stage_progress
from weakspot.core.samples import SampleSet
from weakspot.generation.counterfactuals import (
    CounterfactualRequest,
    CounterfactualResult,
    CounterfactualStage,
)
from weakspot.generation.generate import GenerateRequest, GenerateResult, generate_images
from weakspot.generation.search_run import SearchRequest, SearchResult, SearchStage
from weakspot.ingest.source import SampleSource
from weakspot.nearest.images import NearestRequest, NearestResult, NearestStage
from weakspot.pipeline import loop
from weakspot.pipeline.changed_settings import with_engine, with_methods, with_phrases
from weakspot.pipeline.hypotheses import ask
from weakspot.pipeline.ingestion import IngestResult
from weakspot.pipeline.models.assistants import witness_notes
from weakspot.pipeline.naming import describe_slices
from weakspot.pipeline.phrase_answers import AskResult
from weakspot.pipeline.preparation import EmbedResult
from weakspot.pipeline.settings import Settings
from weakspot.pipeline.settings_file import load_settings
from weakspot.project.new_settings import recommended_settings, with_inputs, write_settings
from weakspot.project.workings import REPAIRED, ProjectWorkings
from weakspot.repair.stage import RepairRequest

DEPRECATED = ("hypothesis",)


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
        own = [
            name for name in vars(Project) if not name.startswith("_") and name not in DEPRECATED
        ]
        return sorted([*own, "folder", "settings", "run_record"])

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

    def hypothesis(self, class_name: str, phrases: Sequence[str]) -> AskResult:
        """Earlier name of `ask`."""
        message = "Project.hypothesis is called Project.ask now."
        warnings.warn(message, DeprecationWarning, stacklevel=2)
        return self.ask(class_name, phrases)

    def nearest(self, request: NearestRequest) -> NearestResult:
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
        return SearchStage(
            tools=self.generation_tools("search", generator=generator), captioner=captioner
        ).run(request)

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
