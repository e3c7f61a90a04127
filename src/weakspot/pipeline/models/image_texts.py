"""What a model says of images, row by row: each different image is asked about once, and what was said is kept."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from weakspot.core.arrays import BoolArray, IntArray
from weakspot.core.dataset import Dataset
from weakspot.core.errors import ModelError
from weakspot.core.roles import Engine
from weakspot.core.run import Progress
from weakspot.embed.encode import Answers
from weakspot.pipeline.models.answers import failing_as_model_error
from weakspot.pipeline.models.model_map import (
    CachedModel,
    FlushPolicy,
    map_missing,
    rows_to_compute,
)
from weakspot.pipeline.models.text_model import Speak, TextModel
from weakspot.store.names import packed_hashes
from weakspot.store.project import ProjectStore
from weakspot.store.texts import TextCache, text_cache

IMAGES_PER_CALL = 16


@dataclass(frozen=True, kw_only=True, eq=False)
class Speaker:
    """A model that says something of images.

    Args:
        who: how it is called in messages.
        part: the model; asked only when there is an image that it has not spoken of.
        identity: gives its id, which may load it.
    """

    who: str
    part: object
    identity: Callable[[], str]

    @property
    def image_side(self) -> int | None:
        side: int | None = getattr(self.part, "image_side", None)
        return side


class ImageTexts:
    """Asks one model about the images of a data set.

    An image that cannot be read, or of which the model says nothing usable, has an empty text and is tried again by the next run.
    A model that cannot be used at all is not asked again: what is known by then is given, and if that is nothing, a ModelError.

    Args:
        speaker: the model.
        dataset: whose rows are meant.
        store: the project's data.
        engine: reads and decodes images, and asks the model.
        progress: told how many images are done.
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
            speak: asks the model about some images; it may have to travel to another process.
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
        if not len(rows_to_compute(self._dataset, self._keys, is_wanted)):
            return
        try:
            with failing_as_model_error(self._speaker.who):
                side = self._speaker.image_side
            model = TextModel(
                who=self._speaker.who,
                speak=speak,
                image_side=side,
                has_spoken=self._has_spoken,
                batch_size=IMAGES_PER_CALL,
            )
            with self._store.writing():
                map_missing(
                    self._dataset,
                    self._keys,
                    [CachedModel(model=model, cache=cache, check=self._note_texts)],
                    engine=self._engine,
                    progress=self._progress,
                    flush=self._flush,
                    is_wanted=is_wanted,
                )
        except ModelError as error:
            self._failure = error

    def _note_texts(self, given: Answers) -> None:
        self._has_spoken |= bool(len(given.places))
