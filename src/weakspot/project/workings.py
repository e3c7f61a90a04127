"""What the stages of a project are made of; rooms above use it, people do not."""

from pathlib import Path

from weakspot.core.needs import Material
from weakspot.core.repairs import RepairPlan
from weakspot.core.roles import ImageGenerator
from weakspot.core.run import RunRecord
from weakspot.core.slices import DataUse
from weakspot.generation.caption_log import captions_sentence
from weakspot.generation.service.tools import GenerationTools
from weakspot.ingest.source import SampleSource
from weakspot.pipeline import loop
from weakspot.pipeline.class_findings import ask_classes, tell_classes
from weakspot.pipeline.ingestion import IngestResult
from weakspot.pipeline.ledger import Ledger
from weakspot.pipeline.method_choice import CHOICE_STAGE, check_methods, choose_methods
from weakspot.pipeline.models.run_models import RunModels
from weakspot.pipeline.naming import describe_slices
from weakspot.pipeline.preparation import Prepared
from weakspot.pipeline.reporting import write_report
from weakspot.pipeline.verdicts import Asking, open_ledger
from weakspot.pipeline.witnessed_names import with_witnessed_names
from weakspot.pipeline.worth_naming import confirmed_without_words
from weakspot.project.session import ProjectSession
from weakspot.repair.advice.stage import Advisor
from weakspot.repair.history import forget_repeats, set_repair_aside
from weakspot.repair.stage import RepairRequest, RepairStage
from weakspot.repair.synthetic_samples import with_synthetic
from weakspot.store.project import ProjectStore

REPAIRED = ("repairs", "notes", "advice", "repaired", "earlier_repairs")


class ProjectWorkings(ProjectSession):
    """The inner steps of the stages, and what other rooms read."""

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
            material = Material.of(prepared.samples)
            said = [choose_methods(self.settings, material).sentence, self._source_note()]
            facts["summary"] = " ".join(part for part in said if part)

    def _source_note(self) -> str:
        tables = self.store.current_tables()
        return "" if tables is None else str(tables.facts.get("source_note", ""))

    def _verify(self, record: RunRecord) -> RunRecord:
        with self._clock.stage("verify") as facts, self.telling("verify"):
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
        prepared = self._with_generated(record)
        record = set_repair_aside(self.store, record)
        with self._clock.stage("repair") as facts:
            stage = RepairStage(
                record=record,
                prepared=prepared,
                settings=self.settings,
                criterion=self.criterion,
                store=self.store,
                progress=self._progress,
            )
            record = forget_repeats(stage.run(asked))
            facts["summary"] = (
                f"{sum(bool(result.arms) for result in record.repairs)} repairs measured"
            )
        with self._clock.stage("advise") as facts, self.telling("advise"):
            record = Advisor(record, prepared, self.settings, self.criterion, self.folder).run()
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
                halves=prepared.halves(self.settings, self.criterion, slices=record.slices),
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
