"""An opened project that many requests share: prepared once, read by all, written by one at a time."""

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path

import numpy as np

from weakspot.app.loop import halves
from weakspot.app.preparation import JOINT, Prepared
from weakspot.app.project import Project
from weakspot.core.arrays import FloatArray, unit_rows
from weakspot.core.class_vectors import with_vectors
from weakspot.core.errors import DataError, ModelError
from weakspot.core.failures import ClassProblem, FailureCriterion, class_problems
from weakspot.core.run import RunRecord
from weakspot.core.samples import SampleSet

PATIENCE_SECONDS = 20.0
MOST_PHRASES = 4096


class Workspace:
    """A project as pages see it. Every method may be called from several threads.

    Args:
        project: the project.
        others: projects with other classifiers on the same samples, to compare with.
    """

    def __init__(self, project: Project, *, others: Sequence[Path] = ()) -> None:
        self.project = project
        self.others = tuple(others)
        self._guard = threading.RLock()
        self._columns = threading.RLock()
        self._words = threading.Lock()
        self._writing = threading.Lock()
        self._views: dict[str, _Prepared] = {}

    @property
    def criterion(self) -> FailureCriterion:
        """Return what counts as a failure."""
        return self.project.settings.failure.criterion()

    @property
    def prepared(self) -> Prepared:
        """Return samples and models; the first call may take long."""
        return self._current.prepared

    @property
    def samples(self) -> SampleSet:
        """Return all samples of the project."""
        return self.prepared.samples

    @property
    def tables_key(self) -> str:
        """Return which tables the samples are from: row numbers mean something only together with it."""
        tables = self.project.store.current_tables()
        return tables.folder.name if tables is not None else ""

    @property
    def discovery(self) -> SampleSet:
        """Return the half that people may look at and choose thresholds on."""
        return self._current.halves[0]

    @property
    def confirmation(self) -> SampleSet:
        """Return the half that is only asked, and every question to it counts."""
        return self._current.halves[1]

    @property
    def confirmation_digest(self) -> str:
        """Return which samples the confirmation half holds."""
        return self._current.confirmation_digest

    @property
    def problems(self) -> dict[str, ClassProblem]:
        """Return the classes of the discovery half by title."""
        return self._current.problems

    def problem(self, title: str) -> ClassProblem:
        """Return a class of the discovery half.

        Raises:
            DataError: if there is none of that title.
        """
        found = self.problems.get(title)
        if found is None:
            raise DataError(f"There is no class {title!r}.", given=title, fix=f"Choose one of {list(self.problems)[:50]}.")
        return found

    def class_vectors(self, title: str) -> tuple[ClassProblem, FloatArray]:
        """Return the samples of a class on the discovery half that have vectors, and their unit vectors [n, d]."""
        return self._current.class_vectors(self.problem(title))

    def embed_texts(self, phrases: Sequence[str]) -> FloatArray:
        """Return unit vectors [m, d] of phrases as they are; the same phrase is embedded once.

        Raises:
            ModelError: if the embedder has no text side.
        """
        embed = self.prepared.assistants.embed_texts
        if embed is None:
            raise ModelError("The embedder has no text side, so phrases cannot be compared with samples.", fix="weakspot align")
        known = self._current.phrases
        if len(known) > MOST_PHRASES:
            known.clear()
        missing = [phrase for phrase in dict.fromkeys(phrases) if phrase not in known]
        if missing:
            with self._words:
                vectors = unit_rows(np.asarray(embed(missing), dtype=np.float32))
            known.update(zip(missing, vectors, strict=True))
        return np.stack([known[phrase] for phrase in phrases])

    def record(self, run_id: str | None = None) -> RunRecord | None:
        """Return a run, the newest by default; None if the project has none yet."""
        if run_id is None and not self.project.store.runs.run_ids():
            return None
        return self.project.run_record(run_id)

    def samples_for(self, record: RunRecord | None) -> SampleSet:
        """Return all samples with the columns that slices of a run read; may take long the first time."""
        with self._columns:
            return self.project.samples(record)

    @contextmanager
    def editing(self) -> Iterator[Project]:
        """Be the only one in this process who changes records; other processes are waited for a while."""
        with self._writing, self.project.store.writing(patience=PATIENCE_SECONDS):
            yield self.project

    def once(self, name: str, make: Callable[[], object]) -> object:
        """Return something that is made once for the current tables, for example a projection; `make` may be slow."""
        current = self._current
        with current.turn_of(name):
            if name not in current.made:
                current.made[name] = make()
            return current.made[name]

    @property
    def _current(self) -> "_Prepared":
        with self._guard:
            key = self.tables_key
            if key not in self._views:
                self._views = {key: _Prepared(self.project, self.criterion)}
            return self._views[key]


class _Prepared:
    """Everything that follows from one set of tables."""

    def __init__(self, project: Project, criterion: FailureCriterion) -> None:
        self.project = project
        self.criterion = criterion
        self.prepared = project.prepared()
        self.phrases: dict[str, FloatArray] = {}
        self.made: dict[str, object] = {}
        self._guard = threading.Lock()
        self._turns: dict[str, threading.RLock] = {}
        self._vectors: dict[str, tuple[ClassProblem, FloatArray]] = {}

    def turn_of(self, name: str) -> threading.RLock:
        """Return the lock of one thing that is made once: whoever makes another thing does not wait for it."""
        with self._guard:
            return self._turns.setdefault(name, threading.RLock())

    @cached_property
    def halves(self) -> tuple[SampleSet, SampleSet]:
        return halves(self.prepared.samples, self.project.settings, self.criterion)[0]

    @cached_property
    def confirmation_digest(self) -> str:
        return self.halves[1].digest()

    @cached_property
    def problems(self) -> dict[str, ClassProblem]:
        found = class_problems(self.halves[0].dataset, self.halves[0].rows, self.criterion)
        return {problem.title: problem for problem in found}

    def class_vectors(self, problem: ClassProblem) -> tuple[ClassProblem, FloatArray]:
        if problem.title not in self._vectors:
            known, raw = with_vectors(self.halves[0], problem, JOINT)
            self._vectors[problem.title] = known, unit_rows(raw)
        return self._vectors[problem.title]
