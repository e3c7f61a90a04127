"""What a model says of pictures, row by row: each different picture is asked about once, and what was said is kept."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from weakspot.app.flushing import FlushClock, FlushPolicy
from weakspot.app.model_answers import failing_as_model_error
from weakspot.app.picture_requests import requests_for, rows_to_compute
from weakspot.app.speaking import Speak, SpokenBatch, speak_of_pictures
from weakspot.core.arrays import BoolArray, IntArray
from weakspot.core.dataset import Dataset
from weakspot.core.errors import ModelError
from weakspot.core.roles import Engine
from weakspot.core.run import Progress
from weakspot.store.names import packed_hashes
from weakspot.store.project import ProjectStore
from weakspot.store.texts import TextCache, text_cache

PICTURES_A_CALL = 16


@dataclass(frozen=True, kw_only=True, eq=False)
class Speaker:
    """A model that says something of pictures.

    Args:
        who: how it is called in messages.
        part: the model; asked only when there is a picture that it has not spoken of.
        identity: gives its id, which may load it.
    """

    who: str
    part: object
    identity: Callable[[], str]

    @property
    def picture_side(self) -> int | None:
        """Return the shortest picture side that it can use, if it says so."""
        side: int | None = getattr(self.part, "picture_side", None)
        return side


class PictureTexts:
    """Asks one model about the pictures of a data set.

    A picture that cannot be read, or of which the model says nothing usable, has an empty text and is tried again by the next run.
    A model that cannot be used at all is not asked again: what is known by then is given, and if that is nothing, a ModelError.

    Args:
        speaker: the model.
        dataset: whose rows are meant.
        store: the project's data.
        engine: reads and decodes pictures, and asks the model.
        progress: told how many pictures are done.
        flush: when finished texts are written.
    """

    def __init__(
        self,
        speaker: Speaker,
        *,
        dataset: Dataset,
        store: ProjectStore,
        engine: Engine,
        progress: Progress,
        flush: FlushPolicy | None = None,
    ) -> None:
        self._speaker = speaker
        self._dataset = dataset
        self._keys = packed_hashes(dataset.table.column("content_hash"))
        self._store = store
        self._engine = engine
        self._progress = progress
        self._flush = flush or FlushPolicy()
        self._caches: dict[str, TextCache] = {}
        self._tried: dict[str, BoolArray] = {}
        self._failure: ModelError | None = None
        self._has_spoken = False

    def said(self, rows: IntArray, speak: Speak, *, question: str = "") -> list[str]:
        """Return one text a row, empty where there is none.

        Args:
            rows: rows of the data set.
            speak: asks the model about some pictures; it may have to travel to another process.
            question: what it asks; texts are kept by question.

        Raises:
            ModelError: if the model cannot be used and nothing is known of these rows.
        """
        cache = self._cache(question)
        tried = self._tried.setdefault(question, np.zeros(len(self._dataset), dtype=np.bool_))
        wanted = rows[cache.missing(self._keys[rows]) & ~tried[rows]]
        if len(wanted) and self._failure is None:
            self._ask(wanted, speak, cache)
            tried[wanted] = True
        found = cache.texts(self._keys[rows])
        if self._failure is not None and len(rows) and all(text is None for text in found):
            raise self._failure
        return [text or "" for text in found]

    def _cache(self, question: str) -> TextCache:
        if question not in self._caches:
            if self._failure is not None and not self._caches:
                raise self._failure
            try:
                with failing_as_model_error(self._speaker.who):
                    identity = f"{self._speaker.identity()} {question}".strip()
            except ModelError as error:
                self._failure = error
                raise
            self._caches[question] = text_cache(self._store.data, identity)
        return self._caches[question]

    def _ask(self, rows: IntArray, speak: Speak, cache: TextCache) -> None:
        is_wanted = np.zeros(len(self._dataset), dtype=np.bool_)
        is_wanted[rows] = True
        todo = rows_to_compute(self._dataset, self._keys, is_wanted)
        if not len(todo):
            return
        waiting = _Waiting()
        with self._store.writing():
            try:
                self._ask_all(todo, speak, cache, waiting)
            except ModelError as error:
                self._failure = error
            finally:
                self._write(waiting, cache)

    def _ask_all(self, todo: IntArray, speak: Speak, cache: TextCache, waiting: "_Waiting") -> None:
        clock, n_done = FlushClock(self._flush), 0
        self._progress(0, len(todo))
        for batch in self._spoken(todo, speak):
            waiting.rows += batch.positions.tolist()
            waiting.texts += batch.texts
            self._has_spoken |= bool(batch.texts)
            if batch.failure is not None:
                raise batch.failure
            if clock.is_due(len(waiting.texts)):
                self._write(waiting, cache)
                clock.flushed()
            n_done += batch.n_requests
            self._progress(n_done, len(todo))

    def _spoken(self, rows: IntArray, speak: Speak) -> Iterator[SpokenBatch]:
        with failing_as_model_error(self._speaker.who):
            side = self._speaker.picture_side
        return speak_of_pictures(
            requests_for(self._dataset, rows),
            speak,
            who=self._speaker.who,
            picture_side=side,
            has_spoken=self._has_spoken,
            engine=self._engine,
            batch_size=PICTURES_A_CALL,
        )

    def _write(self, waiting: "_Waiting", cache: TextCache) -> None:
        if waiting.texts:
            cache.append(self._keys[np.array(waiting.rows, dtype=np.int64)], waiting.texts)
        waiting.rows.clear()
        waiting.texts.clear()


class _Waiting:
    """Texts that are not written yet, with their rows."""

    def __init__(self) -> None:
        self.rows: list[int] = []
        self.texts: list[str] = []
