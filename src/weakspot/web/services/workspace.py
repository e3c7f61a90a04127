"""An opened project that many requests share: prepared once, read by all, written by one at a time; and the marks on its samples."""

import threading
from collections import Counter, OrderedDict
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, wait
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import TypeVar, cast

import numpy as np
from pydantic import Field

from weakspot.core.arrays import FloatArray, unit_rows
from weakspot.core.errors import DataError, ModelError, StoreError
from weakspot.core.failures import ClassProblem, FailureCriterion, class_problems
from weakspot.core.run import RunRecord
from weakspot.core.samples import SampleSet, with_embeddings
from weakspot.core.slices import DataUse
from weakspot.generate.caption_log import captions_sentence
from weakspot.project.project import Project
from weakspot.run.ingestion import MissingImages, find_missing_images
from weakspot.run.ledger import Ledger
from weakspot.run.preparation import CLIP, Prepared
from weakspot.run.verdicts import open_ledger
from weakspot.store.runs import RECORD_FILE
from weakspot.web.services.view import Moment, View

ANY, NONE, TAG = "any", "none", "tag:"


class MarkKind(StrEnum):
    """What can be said of a sample. It has at most one of the first two, and any number of notes and tags."""

    LABEL = "label"
    UNUSABLE = "unusable"
    NOTE = "note"
    TAG = "tag"


ALONE = (MarkKind.LABEL, MarkKind.UNUSABLE)
"""Of these a sample has one at most: what is said last takes the place of what was said before."""


class NewMark(View):
    """What is said of a sample.

    Args:
        kind: what is said.
        labels: the right labels, if the given one is wrong; empty if the right one is not known.
        text: of a note or a tag.
    """

    kind: MarkKind
    labels: list[str] = Field(default_factory=list)
    text: str = ""

    @property
    def words(self) -> str:
        """Return the mark in a few words."""
        if self.kind is MarkKind.LABEL:
            return (
                f"label is wrong, it is {', '.join(self.labels)}"
                if self.labels
                else "label is wrong"
            )
        return "unusable" if self.kind is MarkKind.UNUSABLE else f"{self.kind.value}: {self.text}"


class Mark(NewMark):
    """What a person said of a sample, and when."""

    by: str
    time: Moment


@dataclass(frozen=True, kw_only=True, eq=False)
class MarkBook:
    """All marks that hold.

    Args:
        version: differs whenever a mark does.
        by_sample: marks by the id of their sample, oldest first.
    """

    version: int = 0
    by_sample: Mapping[str, tuple[Mark, ...]] = field(default_factory=dict)

    def of(self, sample_id: str) -> tuple[Mark, ...]:
        return self.by_sample.get(sample_id, ())

    def samples(self, wanted: str) -> Iterator[str]:
        """Return the ids of samples with a mark.

        Args:
            wanted: `any`, a kind, or `tag:` and the tag.
        """
        for sample_id, marks in self.by_sample.items():
            if any(_is_wanted(one, wanted) for one in marks):
                yield sample_id

    def counts(self) -> dict[str, int]:
        """Return how many samples have each kind of mark."""
        found = Counter(
            kind for marks in self.by_sample.values() for kind in {m.kind for m in marks}
        )
        return {kind.value: found[kind] for kind in MarkKind}

    def tags(self) -> list[str]:
        """Return all tags, most frequent first."""
        return [tag for tag, _ in Counter(self._tags()).most_common()]

    def _tags(self) -> Iterable[str]:
        every = (one for marks in self.by_sample.values() for one in marks)
        return (one.text for one in every if one.kind is MarkKind.TAG)


def _is_wanted(mark: Mark, wanted: str) -> bool:
    if wanted.startswith(TAG):
        return mark.kind is MarkKind.TAG and mark.text == wanted.removeprefix(TAG)
    return wanted in (ANY, mark.kind.value)


class Shared:
    """What people share that queries of images may ask for; nobody said anything here, the server's shared state knows more."""

    def marks(self) -> MarkBook:
        """Return all marks that hold."""
        return MarkBook()

    def selection(self, selection_id: str) -> list[str] | None:
        """Return the ids of samples that were picked out, None if there is no such selection."""
        del selection_id
        return None


PATIENCE_SECONDS = 20.0
MAX_PHRASES = 4096
MAX_KEPT = 200
Made = TypeVar("Made")


class Workspace:
    """A project as pages see it. Every method may be called from several threads.

    Args:
        project: the project.
        others: projects with other classifiers on the same samples, to compare with.
    """

    def __init__(self, project: Project, *, others: Sequence[Path] = ()) -> None:
        self.project = project
        self.others = tuple(others)
        self.shared = Shared()
        self._guard = threading.RLock()
        self._columns = threading.RLock()
        self._words = threading.Lock()
        self._writing = threading.RLock()
        self._views: dict[str, _Made] = {}

    def adopt(self, project: Project) -> None:
        """Show another project from now on: the one that a person has just set up."""
        with self._guard:
            self.project = project
            self._views = {}

    @property
    def criterion(self) -> FailureCriterion:
        return self.project.settings.failure.criterion()

    @property
    def prepared(self) -> Prepared:
        """Return samples and models; the first call may take long."""
        return self.once("prepared", self.project.prepared)

    @property
    def samples(self) -> SampleSet:
        return self.prepared.samples

    @property
    def tables_key(self) -> str:
        """Return which tables the samples are from: row numbers mean something only together with it."""
        return self.project.store.tables_key()

    @property
    def has_images(self) -> bool:
        """Return whether samples have images, as far as it was noted when they were read; asks nothing that takes time."""
        try:
            tables = self.project.store.current_tables()
        except StoreError:
            return True
        return tables is None or bool(tables.facts.get("has_images", True))

    def missing_images(self) -> MissingImages | None:
        """Return which images are not where they were, as far as some were looked at; None if all are there."""
        try:
            tables = self.project.store.current_tables()
            return None if tables is None else find_missing_images(tables.dataset())
        except StoreError:
            return None

    @property
    def has_text_side(self) -> bool:
        """Return whether phrases can be compared with samples."""
        return self.prepared.assistants.embed_texts is not None

    @property
    def discovery(self) -> SampleSet:
        """Return the half that people may look at and choose thresholds on."""
        return self._halves[0]

    @property
    def confirmation(self) -> SampleSet:
        """Return the half that is only asked, and every question to it counts."""
        return self._halves[1]

    @property
    def _halves(self) -> tuple[SampleSet, SampleSet]:
        return self.once(
            "halves", lambda: self.prepared.halves(self.project.settings, self.criterion)[0]
        )

    @property
    def discovery_use(self) -> DataUse:
        """Return what a slice says that was found on the discovery half; a hash over all ids, made once."""
        return self.once("discovery use", lambda: DataUse.of(self.discovery))

    @property
    def confirmation_digest(self) -> str:
        """Return which samples the confirmation half holds."""
        return self.once("confirmation digest", self.confirmation.digest)

    @property
    def ledger(self) -> Ledger:
        """Return what the evaluation samples were asked so far, and what is left."""
        project = self.project
        return self.once(
            "ledger", lambda: open_ledger(project.store, self.samples, project.settings)
        )

    def asked(self) -> list[str]:
        """Return in plain words what was asked so far and what is left to spend."""
        captions = captions_sentence(self.project.store)
        return [self.ledger.standing().sentence, *filter(None, [captions])]

    @property
    def problems(self) -> dict[str, ClassProblem]:
        """Return the classes of the discovery half by title."""
        return self.once("problems", self._problems)

    def _problems(self) -> dict[str, ClassProblem]:
        found = class_problems(self.discovery.dataset, self.discovery.rows, self.criterion)
        return {problem.title: problem for problem in found}

    def problem(self, title: str) -> ClassProblem:
        """Return a class of the discovery half.

        Raises:
            DataError: if there is none of that title.
        """
        found = self.problems.get(title)
        if found is None:
            raise DataError(
                f"There is no class {title!r}.",
                given=title,
                fix=f"Choose one of {list(self.problems)[:50]}.",
            )
        return found

    def class_embeddings(self, title: str) -> tuple[ClassProblem, FloatArray]:
        """Return the samples of a class on the discovery half that have embeddings, and their unit vectors [n, d]."""
        problem = self.problem(title)

        def read() -> tuple[ClassProblem, FloatArray]:
            known, raw = with_embeddings(self.discovery, problem, CLIP)
            return known, unit_rows(raw)

        return self.once(f"embeddings {title}", read)

    def embed_texts(self, phrases: Sequence[str]) -> FloatArray:
        """Return unit vectors [m, d] of phrases as they are; the same phrase is embedded once.

        Raises:
            ModelError: if the embedder has no text side.
        """
        embed = self.prepared.assistants.embed_texts
        if embed is None:
            raise ModelError(
                "The embedder has no text side, so phrases cannot be compared with samples.",
                fix="weakspot lab align",
            )
        known = self.once("phrases", dict[str, FloatArray])
        if len(known) > MAX_PHRASES:
            known.clear()
        missing = [phrase for phrase in dict.fromkeys(phrases) if phrase not in known]
        if missing:
            with self._words:
                embeddings = unit_rows(np.asarray(embed(missing), dtype=np.float32))
            known.update(zip(missing, embeddings, strict=True))
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
        """Be the only one in this process who changes records; other processes are waited for a while. It may be nested."""
        with self._writing, self.project.store.writing(patience=PATIENCE_SECONDS):
            yield self.project

    def once(self, name: str, make: Callable[[], Made]) -> Made:
        """Return something that is made once for the current tables, for example a projection; `make` may be slow."""
        made = self._made
        with self._guard:
            lock = made.locks.setdefault(name, threading.RLock())
        with lock:
            if name not in made.things:
                made.things[name] = make()
            return cast("Made", made.things[name])

    def recent(
        self, name: str, key: Hashable, make: Callable[[], Made], *, most: int = MAX_KEPT
    ) -> Made:
        """Return something that is made once for a key; of each name, those that were asked for last are kept."""
        kept = self.once(f"recent {name}", OrderedDict[Hashable, Made])
        with self._guard:
            if key in kept:
                kept.move_to_end(key)
                return kept[key]
        made = make()
        with self._guard:
            kept[key] = made
            while len(kept) > most:
                kept.popitem(last=False)
        return made

    def make_of_run(
        self, run_id: str, name: str, make: Callable[[RunRecord], Made], *, most: int = MAX_KEPT
    ) -> Made:
        """Return something that follows from a run alone; it is made again only when the run was written again.

        Args:
            run_id: which run.
            name: what it is called.
            make: makes it.
            most: how many runs it is kept of.

        Raises:
            StoreError: if there is no such run.
        """
        runs = self.project.store.runs
        if run_id not in runs.run_ids():
            raise StoreError(
                "There is no such run.", given=run_id, fix="Choose one of those on the overview."
            )
        # A run is always written as a new file.
        facts = (runs.folder / run_id / RECORD_FILE).stat()
        state = facts.st_ino, facts.st_mtime_ns, facts.st_size
        key = run_id, *state
        return self.recent(f"{name} of runs", key, lambda: make(runs.load(run_id)), most=most)

    @property
    def _made(self) -> "_Made":
        with self._guard:
            key = self.tables_key
            if key not in self._views:
                self._views = {key: _Made()}
            return self._views[key]


@dataclass(eq=False)
class _Made:
    """What follows from one set of tables, by name; whoever makes another thing does not wait for it."""

    things: dict[str, object] = field(default_factory=dict)
    locks: dict[str, threading.RLock] = field(default_factory=dict)


def begin(make: Callable[[], Made]) -> Future[Made]:
    """Begin to make something in a thread of its own, which does not keep the process from ending."""
    made: Future[Made] = Future()

    def run() -> None:
        try:
            made.set_result(make())
        except Exception as error:  # noqa: BLE001 (raised again for everyone who asks)
            made.set_exception(error)

    threading.Thread(target=run, daemon=True).start()
    return made


def make_beside(
    workspace: Workspace, name: str, make: Callable[[], Made], *, patience: float
) -> Made | None:
    """Return something that is made once for the current tables, None while it is not ready.

    Args:
        workspace: who keeps it.
        name: what it is called.
        make: makes it, in a thread of its own; nobody else waits for it.
        patience: seconds that this request waits.
    """
    making = workspace.once(f"beside: {name}", lambda: begin(make))
    wait([making], timeout=patience)
    return making.result() if making.done() else None
