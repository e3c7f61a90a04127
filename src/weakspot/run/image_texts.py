"""What a model says of images, row by row: each different image is asked about once, wherever an engine has a worker.

And what was said is kept.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
from PIL import Image

from weakspot.core.arrays import AnyArray, BoolArray, IntArray
from weakspot.core.dataset import Dataset
from weakspot.core.errors import MissingExtraError, ModelError, UnavailableError, WeakspotError
from weakspot.core.roles import Engine
from weakspot.core.run import Progress, no_progress
from weakspot.data.embed import Answers
from weakspot.run.model_map import CachedModel, FlushPolicy, map_missing, rows_to_compute
from weakspot.store.array_files import packed_hashes
from weakspot.store.project import ProjectStore
from weakspot.store.texts import TextCache, text_cache

_SHOWN = 200


@contextmanager
def failing_as_model_error(who: str) -> Iterator[None]:
    """Turn any error of a part into a ModelError, which methods and the loop turn into a note.

    Args:
        who: how the part is called in messages, such as `captioner`.
    """
    try:
        yield
    except ModelError:
        raise
    except WeakspotError as error:
        raise ModelError(
            f"The {who} cannot be used. {error.what}",
            where=error.where,
            given=error.given,
            fix=error.fix,
        ) from error
    except Exception as error:  # a part of another package may raise anything
        raise ModelError(
            f"The {who} failed: {type(error).__name__}: {str(error)[:_SHOWN]}"
        ) from error


def storable(text: str) -> str:
    """Return a text that can be written as UTF-8: halves of characters become question marks."""
    return text.encode("utf-8", "replace").decode("utf-8")


MAX_FAILURES_IN_A_ROW = 16
MAX_FAILURES_AT_FIRST = 2

Speak = Callable[[Sequence[Image.Image]], list[str]]


class TextModel:
    """Images to texts. A batch that fails is asked about image by image; too many failures in a row are one of the model.

    A model that has failed is not asked again, also not about batches that an engine had given out before it knew.

    Args:
        who: how the model is called in messages.
        speak: asks it about some images.
        image_side: shortest image side that it can use; None for full size.
        has_spoken: whether it has ever given a text; one that has not is given up sooner.
        batch_size: images per call.
    """

    def __init__(
        self,
        *,
        who: str,
        speak: Speak,
        image_side: int | None,
        has_spoken: bool,
        batch_size: int = 16,
    ) -> None:
        self.image_side = image_side
        self.batch_size = batch_size
        self._who = who
        self._speak = speak
        self._has_spoken = has_spoken
        self._n_bad_in_a_row = 0
        self._failure: ModelError | None = None

    def prepare(self, image: Image.Image) -> AnyArray:
        return np.asarray(image)

    def answer(self, prepared: Sequence[AnyArray]) -> Answers:
        """Return one column of texts, of those images that have one."""
        texts: dict[int, str] = {}
        if self._failure is None:
            self._failure = self._ask(prepared, texts)
        return Answers(
            places=np.array(list(texts), dtype=np.int64),
            columns=(np.array(list(texts.values()), dtype=object),),
            failure=self._failure,
        )

    def _ask(self, prepared: Sequence[AnyArray], texts: dict[int, str]) -> ModelError | None:
        try:
            texts.update(enumerate(self._texts(prepared)))
        except ModelError as error:
            return error if _is_gone(error) else self._ask_one_by_one(prepared, texts)
        return None

    def _ask_one_by_one(
        self, prepared: Sequence[AnyArray], texts: dict[int, str]
    ) -> ModelError | None:
        for place, array in enumerate(prepared):
            try:
                (texts[place],) = self._texts([array])
            except ModelError as error:
                self._n_bad_in_a_row += 1
                most = MAX_FAILURES_IN_A_ROW if self._has_spoken else MAX_FAILURES_AT_FIRST
                if self._n_bad_in_a_row >= most or _is_gone(error):
                    return error
        return None

    def _texts(self, prepared: Sequence[AnyArray]) -> list[str]:
        images = [Image.fromarray(array) for array in prepared]
        with failing_as_model_error(self._who):
            given = self._speak(images)
            if len(given) != len(images):
                raise ModelError(
                    f"The {self._who} gave {len(given)} texts for {len(images)} images."
                )
            texts = [storable(text).strip() for text in given]
        self._has_spoken, self._n_bad_in_a_row = True, 0
        return texts


def _is_gone(error: ModelError) -> bool:
    return isinstance(error.__cause__, UnavailableError | MissingExtraError)


IMAGES_PER_CALL = 16


@dataclass(frozen=True, kw_only=True, eq=False)
class ImageBench:
    """Where models are asked about the images of a data set.

    Args:
        dataset: whose rows are meant.
        store: the project's data, where answers are kept.
        engine: reads and decodes images, and asks the models.
        progress_of: gives the progress callback of a step.
    """

    dataset: Dataset
    store: ProjectStore
    engine: Engine
    progress_of: Callable[[str], Progress] = lambda _step: no_progress


class ImageTexts:
    """Asks one model about the images of a data set.

    An image that cannot be read, or of which the model says nothing usable, has an empty text and is tried again by the next run.
    A model that cannot be used at all is not asked again: what is known by then is given, and if that is nothing, a ModelError.

    Args:
        bench: where it is asked.
        who: how the model is called in messages.
        part: the model; asked only when there is an image that it has not spoken of.
        identity: gives its id, which may load it.
        step: what it does, for the progress callback.
        flush: when finished texts are written.
    """

    def __init__(
        self,
        bench: ImageBench,
        *,
        who: str,
        part: object,
        identity: Callable[[], str],
        step: str,
        flush: FlushPolicy | None = None,
    ) -> None:
        self._bench = bench
        self._who, self._part, self._identity = who, part, identity
        self._step, self._flush = step, flush or FlushPolicy()
        self._keys = packed_hashes(bench.dataset.table.column("content_hash"))
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
        tried = self._tried.setdefault(question, np.zeros(len(self._keys), dtype=np.bool_))
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
                with failing_as_model_error(self._who):
                    identity = f"{self._identity()} {question}".strip()
            except ModelError as error:
                self._failure = error
                raise
            self._caches[question] = text_cache(self._bench.store.data, identity)
        return self._caches[question]

    def _ask(self, rows: IntArray, speak: Speak, cache: TextCache) -> None:
        bench, is_wanted = self._bench, np.zeros(len(self._keys), dtype=np.bool_)
        is_wanted[rows] = True
        if not len(rows_to_compute(bench.dataset, self._keys, is_wanted)):
            return
        try:
            with failing_as_model_error(self._who):
                side: int | None = getattr(self._part, "image_side", None)
            model = TextModel(
                who=self._who,
                speak=speak,
                image_side=side,
                has_spoken=self._has_spoken,
                batch_size=IMAGES_PER_CALL,
            )
            with bench.store.writing():
                map_missing(
                    bench.dataset,
                    self._keys,
                    [CachedModel(model=model, cache=cache, check=self._note_texts)],
                    engine=bench.engine,
                    progress=bench.progress_of(self._step),
                    flush=self._flush,
                    is_wanted=is_wanted,
                )
        except ModelError as error:
            self._failure = error

    def _note_texts(self, given: Answers) -> None:
        self._has_spoken |= bool(len(given.places))
