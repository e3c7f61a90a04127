"""An opened project: its folder, store, models and run records, shared by everything that is done with it."""

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from functools import cached_property
from pathlib import Path

from weakspot.core.errors import StoreError
from weakspot.core.failures import FailureCriterion, describe_criterion
from weakspot.core.preflight import PreflightCheck
from weakspot.core.roles import Classifier, Embedder
from weakspot.core.run import Progress, RunRecord, StageProgress, no_stage_progress
from weakspot.ingest.source import SampleSource
from weakspot.media.remote import reading_as
from weakspot.pipeline.attributes.edit_log import AttributeEditFile
from weakspot.pipeline.ingestion import IngestResult
from weakspot.pipeline.models.run_models import RunModels
from weakspot.pipeline.preflight.stage import (
    check_after,
    check_before,
    check_ingested,
    check_now,
    merge_checks,
)
from weakspot.pipeline.preparation import Preparation, Prepared
from weakspot.pipeline.settings import SETTINGS_FILE, Settings
from weakspot.pipeline.stage_clock import StageClock, finished, new_record
from weakspot.pipeline.wiring import AUTO, remote_reading_for
from weakspot.report.check_wording import checks_sentence
from weakspot.store.project import ProjectStore
from weakspot.store.runs import RECORD_FILE

PATIENCE_SECONDS = 30.0
PREFLIGHT = "preflight"


class ProjectSession:
    """A project folder with what was opened of it so far.

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
        progress = self.progress_of(stage)
        progress(0, 1)
        yield
        progress(1, 1)

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
            store=store,
            folder=self.folder,
            settings=self.settings,
            classifier=self._given_classifier,
            embedder=self._given_embedder,
            clock=self._clock,
            progress_of=self.progress_of,
            ready_models=self._models,
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
            classifier=self._given_classifier,
            embedder=self._given_embedder,
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


def _state_of(path: Path) -> tuple[int, int]:
    """Return what changes whenever a file is written anew, which is always under another inode."""
    status = path.stat()
    return status.st_ino, status.st_mtime_ns
