"""What a model says of pictures, row by row: each different picture is asked about once, and what was said is kept."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from PIL import Image

from weakspot.app.flushing import FlushClock, FlushPolicy
from weakspot.app.model_answers import failing_as_model_error, storable
from weakspot.app.picture_requests import requests_for, rows_to_compute
from weakspot.core.arrays import AnyArray, BoolArray, IntArray
from weakspot.core.dataset import Dataset
from weakspot.core.errors import MissingExtraError, ModelError, UnavailableError
from weakspot.core.roles import Engine
from weakspot.core.run import Progress
from weakspot.embed.encode import prepared_batches
from weakspot.store.names import packed_hashes
from weakspot.store.project import ProjectStore
from weakspot.store.texts import TextCache, text_cache

PICTURES_A_CALL = 16
MOST_FAILURES_IN_A_ROW = 16
MOST_FAILURES_AT_FIRST = 2

Speak = Callable[[Sequence[Image.Image]], list[str]]


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
        engine: reads and decodes pictures.
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
        self._n_good = 0
        self._n_bad_in_a_row = 0

    def said(self, rows: IntArray, speak: Speak, *, question: str = "") -> list[str]:
        """Return one text a row, empty where there is none.

        Args:
            rows: rows of the data set.
            speak: asks the model about some pictures.
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
        clock = FlushClock(self._flush)
        self._progress(0, len(todo))
        for start in range(0, len(todo), PICTURES_A_CALL):
            chunk = todo[start : start + PICTURES_A_CALL]
            self._ask_chunk(chunk, speak, waiting)
            if clock.is_due(len(waiting.texts)):
                self._write(waiting, cache)
                clock.flushed()
            self._progress(start + len(chunk), len(todo))

    def _ask_chunk(self, rows: IntArray, speak: Speak, waiting: "_Waiting") -> None:
        with failing_as_model_error(self._speaker.who):
            side = self._speaker.picture_side
        requests = requests_for(self._dataset, rows)
        for batch in prepared_batches(requests, _pixels, side, engine=self._engine, batch_size=len(rows)):
            pictures = [Image.fromarray(pixels) for pixels in batch.prepared]
            try:
                texts: list[str | None] = list(self._spoken(pictures, speak))
                self._n_good, self._n_bad_in_a_row = self._n_good + len(texts), 0
            except ModelError as error:
                if isinstance(error.__cause__, UnavailableError | MissingExtraError):
                    raise
                waiting.take_some(batch.positions, pictures, lambda picture: self._spoken_alone(picture, speak))
                continue
            waiting.take(batch.positions, texts)

    def _spoken(self, pictures: Sequence[Image.Image], speak: Speak) -> list[str]:
        if not pictures:
            return []
        with failing_as_model_error(self._speaker.who):
            texts = speak(pictures)
            if len(texts) != len(pictures):
                raise ModelError(f"The {self._speaker.who} gave {len(texts)} texts for {len(pictures)} pictures.")
            return [storable(text).strip() for text in texts]

    def _spoken_alone(self, picture: Image.Image, speak: Speak) -> str | None:
        """Return the text of one picture of a batch that failed, or None; too many failures in a row are one of the model."""
        try:
            text = self._spoken([picture], speak)[0]
        except ModelError as error:
            self._n_bad_in_a_row += 1
            most = MOST_FAILURES_IN_A_ROW if self._n_good else MOST_FAILURES_AT_FIRST
            if self._n_bad_in_a_row >= most or isinstance(error.__cause__, UnavailableError | MissingExtraError):
                raise
            return None
        self._n_good, self._n_bad_in_a_row = self._n_good + 1, 0
        return text

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

    def take(self, rows: IntArray, texts: Sequence[str | None]) -> None:
        """Keep the texts that there are."""
        for row, text in zip(rows.tolist(), texts, strict=True):
            if text is not None:
                self.rows.append(row)
                self.texts.append(text)

    def take_some(self, rows: IntArray, pictures: Sequence[Image.Image], speak_of: Callable[[Image.Image], str | None]) -> None:
        """Keep text after text, so that those before a failure are not lost."""
        for place, picture in enumerate(pictures):
            self.take(rows[place : place + 1], [speak_of(picture)])


def _pixels(picture: Image.Image) -> AnyArray:
    return np.asarray(picture)
