"""What models say of images: computed once for each different image, kept by content, in one pass over a source.

Words, masks of objects, and whatever a classifier or an embedder gives.
"""

import base64
import io
import json
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property, partial
from pathlib import Path
from typing import Protocol

import numpy as np
import pyarrow as pa
from PIL import Image

from weakspot.core.arrays import AnyArray, BoolArray, IntArray
from weakspot.core.dataset import Dataset, ExaminedSample, RawSample
from weakspot.core.errors import MissingExtraError, ModelError, UnavailableError, WeakspotError
from weakspot.core.roles import Classifier, Engine, ObjectMask, Segmenter
from weakspot.core.run import Progress, no_progress
from weakspot.data.embed import (
    Answers,
    ImageModel,
    ImageRequest,
    PreparedArrays,
    UnreadableImage,
    answer_all,
    map_images,
    prepare_for,
    shared_batch_size,
)
from weakspot.data.examine import Examined, examine
from weakspot.data.images import UNREADABLE_REASONS, WORKER_LOST, DecodedImage, UnreadableImageError
from weakspot.run.settings import Settings
from weakspot.run.wiring import build_part, resolved_options, with_provider
from weakspot.store.array_files import HASH_BYTES, HASH_DIGITS, packed_hashes
from weakspot.store.project import ProjectStore
from weakspot.store.texts import TextCache, text_cache

CHUNK_ROWS = 4096


@dataclass(frozen=True, kw_only=True)
class FlushPolicy:
    """When finished work is written: often enough that a crash costs little, rarely enough that files stay few.

    Args:
        n_samples: most samples that are kept in memory.
        seconds: longest time that finished work is kept in memory only.
    """

    n_samples: int = 4096
    seconds: float = 5.0


class FlushClock:
    """Says when it is time to write."""

    def __init__(self, policy: FlushPolicy) -> None:
        self._policy = policy
        self._last = time.monotonic()

    def is_due(self, n_waiting: int) -> bool:
        """Return whether the waiting samples should be written now."""
        is_late = time.monotonic() - self._last >= self._policy.seconds
        return n_waiting >= self._policy.n_samples or (n_waiting > 0 and is_late)

    def flushed(self) -> None:
        """Note that everything was written just now."""
        self._last = time.monotonic()


class ResultCache(Protocol):
    """Keeps what one model gave, by content hash."""

    @property
    def append(self) -> Callable[..., None]:
        """Store the columns of keys; they are on disk when this returns."""

    def missing(self, keys: AnyArray) -> BoolArray:
        """Return for which keys [n] nothing is stored yet."""

    def keys(self) -> AnyArray:
        """Return the keys for which something is stored."""


def accept_all(_answers: Answers) -> None:
    """Take any answer."""


@dataclass(frozen=True, kw_only=True, eq=False)
class CachedModel:
    """A model and what is known of it.

    Args:
        model: sent to other processes where the engine has some.
        cache: keeps its columns by content.
        check: refuses answers that cannot be used, before they are kept.
    """

    model: ImageModel
    cache: ResultCache
    check: Callable[[Answers], None] = accept_all


@dataclass(kw_only=True)
class ModelCount:
    """What a pass did with one model.

    Args:
        n_new: images that went through it.
        unreadable: images that it should have seen and that could not be read now; they are tried again next time.
    """

    n_new: int = 0
    unreadable: list[UnreadableImage] = field(default_factory=list)


class ResultBuffer:
    """Answers of models that are not written yet."""

    def __init__(self, models: Sequence[CachedModel]) -> None:
        self.counts = tuple(ModelCount() for _ in models)
        self._models = models
        self._keys: list[list[AnyArray]] = [[] for _ in models]
        self._columns: list[list[tuple[AnyArray, ...]]] = [[] for _ in models]

    @property
    def n_waiting(self) -> int:
        """Return of how many images the answers of the model that has most are waiting."""
        return max((sum(map(len, keys)) for keys in self._keys), default=0)

    def add(self, keys: AnyArray, answers: Sequence[Sequence[Answers]]) -> None:
        """Take the answers of every model for a batch of images with these keys.

        Raises:
            ModelError: if a model must not be asked any more; what it gave before is taken.
        """
        for number, calls in enumerate(answers):
            for given in calls:
                self._add(number, keys[given.places], given)

    def _add(self, number: int, keys: AnyArray, given: Answers) -> None:
        self._models[number].check(given)
        if len(keys):
            self._keys[number].append(keys)
            self._columns[number].append(given.columns)
            self.counts[number].n_new += len(keys)
        if given.failure is not None:
            raise given.failure

    def write(self) -> None:
        for number, model in enumerate(self._models):
            for keys, columns in _join(self._keys[number], self._columns[number]):
                _, first = np.unique(keys, return_index=True)
                first.sort()
                self.counts[number].n_new -= len(keys) - len(first)
                model.cache.append(keys[first], *[column[first] for column in columns])
            self._keys[number], self._columns[number] = [], []


def _join(
    keys: list[AnyArray], columns: list[tuple[AnyArray, ...]]
) -> Iterator[tuple[AnyArray, list[AnyArray]]]:
    """Yield keys and columns of consecutive answers of the same shape in one piece; a cache refuses a second shape."""
    start = 0
    shapes = [tuple(column.shape[1:] for column in some) for some in columns]
    for stop in range(1, len(keys) + 1):
        if stop == len(keys) or shapes[stop] != shapes[start]:
            together = zip(*columns[start:stop], strict=True)
            yield np.concatenate(keys[start:stop]), [np.concatenate(each) for each in together]
            start = stop


def map_missing(
    dataset: Dataset,
    keys: AnyArray,
    models: Sequence[CachedModel],
    *,
    engine: Engine,
    progress: Progress = no_progress,
    flush: FlushPolicy | None = None,
    is_wanted: BoolArray | None = None,
) -> tuple[ModelCount, ...]:
    """Put the images of a data set through models, each through those that do not know it; killed at any instant, little is lost.

    Args:
        dataset: whose images are meant.
        keys: packed content hashes of its rows [n].
        models: share one reading of every image.
        engine: where images are read, prepared and put through the models.
        progress: called with how many images are done.
        flush: when finished answers are written.
        is_wanted: which rows are meant [n]; all by default.

    Raises:
        ModelError: if a model gives something else than it should; what was given before is kept.
    """
    is_missing = [model.cache.missing(keys) for model in models]
    if is_wanted is not None:
        is_missing = [missing & is_wanted for missing in is_missing]
    rows = rows_to_compute(dataset, keys, np.logical_or.reduce(is_missing))
    buffer, clock, n_done = ResultBuffer(models), FlushClock(flush or FlushPolicy()), 0
    progress(0, len(rows))
    requests = requests_for(dataset, rows, is_missing)
    try:
        for batch in map_images(requests, [model.model for model in models], engine=engine):
            for unreadable in batch.unreadable:
                for number, count in enumerate(buffer.counts):
                    if is_missing[number][unreadable.position]:
                        count.unreadable.append(unreadable)
            buffer.add(keys[batch.positions], batch.answers)
            if clock.is_due(buffer.n_waiting):
                buffer.write()
                clock.flushed()
            n_done += len(batch.positions)
            progress(n_done, len(rows))
    except (ModelError, KeyboardInterrupt):
        buffer.write()
        raise
    buffer.write()
    return buffer.counts


def rows_to_compute(dataset: Dataset, keys: AnyArray, is_missing: BoolArray) -> IntArray:
    """Return the rows [m] whose images have to go through a model: missing, with an image, one row for each content."""
    has_image = np.asarray(dataset.table.column("location").is_valid().combine_chunks())
    rows = np.flatnonzero(is_missing & has_image)
    _, first = np.unique(keys[rows], return_index=True)
    return rows[np.sort(first)]


def requests_for(
    dataset: Dataset, rows: IntArray, is_missing: Sequence[BoolArray]
) -> Iterator[ImageRequest]:
    """Yield requests whose positions are the rows, each for the models that miss it, reading the data set chunk by chunk."""
    for start in range(0, len(rows), CHUNK_ROWS):
        chunk = rows[start : start + CHUNK_ROWS]
        picked = dataset.table.select(["location", "content_hash"]).take(pa.array(chunk))
        columns = (
            chunk.tolist(),
            picked.column("location").to_pylist(),
            picked.column("content_hash").to_pylist(),
        )
        for row, location, content_hash in zip(*columns, strict=True):
            models = tuple(number for number, missing in enumerate(is_missing) if missing[row])
            yield ImageRequest(
                position=row, location=location, content_hash=content_hash, models=models
            )


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


PREFIX_DIGITS = 16
NO_HASH = "0" * HASH_DIGITS


@dataclass(frozen=True, kw_only=True, eq=False)
class PassModels:
    """The models that see the images of a source while they are examined.

    Args:
        models: of those that are not asked again, the results are kept.
        classifier: the one among them that is under test; a label that it does not know ends the pass at once.
    """

    models: tuple[CachedModel, ...] = ()
    classifier: Classifier | None = None

    def check(self, sample: Examined) -> None:
        """Refuse a sample whose label the classifier does not know.

        Raises:
            ModelError: now, and not after hours, when the classes of the whole data set are compared.
        """
        names = self.classifier.class_names if self.classifier is not None else None
        if self.classifier is None or names is None or isinstance(sample, RawSample):
            return
        if unknown := [label for label in sample.raw.labels if label not in names]:
            raise ModelError(
                f"Classifier and data set do not have the same classes. Only in the data set: {unknown}, "
                f"the label of {sample.raw.key!r}. Classifier: {list(names)}.",
                where=self.classifier.classifier_id,
                fix="Set class_names of the data to the classifier's classes, or rename the labels.",
            )


class KnownContents:
    """Which contents a model has seen, small enough to travel to workers: half of every hash, sorted.

    One in 10^19 contents that are new is taken for known; it goes through the model after the pass.
    """

    def __init__(self, keys: AnyArray) -> None:
        raw = np.ascontiguousarray(keys).view(np.uint8).reshape(len(keys), HASH_BYTES)
        prefixes = np.ascontiguousarray(raw[:, : PREFIX_DIGITS // 2]).view(">u8")
        self._prefixes = np.unique(prefixes.astype(np.uint64))

    def __contains__(self, content_hash: str) -> bool:
        prefix = int(content_hash[:PREFIX_DIGITS], 16)
        place = int(np.searchsorted(self._prefixes, np.uint64(prefix)))
        return place < len(self._prefixes) and int(self._prefixes[place]) == prefix


Seen = tuple[Examined, PreparedArrays]
"""An examined sample, and what it is prepared as for every model that has to see it."""


@dataclass(frozen=True, kw_only=True, eq=False)
class SeenBatch:
    """Consecutive samples of a source, examined, with what the models give for them.

    Args:
        examined: the samples.
        answers: of every model; places count the samples of the batch.
        lost: a sample on which workers died instead; a model may have been the cause, so it is examined again without any.
    """

    examined: tuple[Examined, ...]
    answers: tuple[tuple[Answers, ...], ...]
    lost: RawSample | ExaminedSample | None = None


@dataclass(frozen=True, kw_only=True, eq=False)
class SeeWork:
    """Samples of a source to examined ones and answers, wherever an engine has a worker.

    Args:
        models: put the images through these.
        known: what each of them has seen before.
    """

    models: tuple[ImageModel, ...]
    known: tuple[KnownContents, ...]

    def prepare(self, item: RawSample | ExaminedSample) -> Seen:
        arrays: dict[int, AnyArray] = {}

        def look(data: bytes, content_hash: str) -> DecodedImage | None:
            numbers = [n for n, known in enumerate(self.known) if content_hash not in known]
            if not numbers:
                return None
            try:
                made, decoded = prepare_for(self.models, numbers, data)
            except (UnreadableImageError, MemoryError):
                return None
            arrays.update(made)
            return decoded

        return examine(item, look), arrays

    def run(self, ready: Sequence[Seen]) -> SeenBatch:
        hashes = [getattr(examined, "content_hash", None) for examined, _ in ready]
        # The same image twice in a batch is answered once; across batches the first answer is kept.
        images = [
            {} if hashes[place] in hashes[:place] else arrays
            for place, (_, arrays) in enumerate(ready)
        ]
        return SeenBatch(
            examined=tuple(examined for examined, _ in ready),
            answers=answer_all(self.models, images),
        )


def examine_samples(
    samples: Iterable[RawSample | ExaminedSample],
    models: PassModels,
    buffer: ResultBuffer,
    *,
    engine: Engine,
) -> Iterator[Examined]:
    """Yield samples examined, in their order; what models give for them is in the buffer by then.

    Raises:
        ModelError: if a model gives something else than it should, or the classifier does not know a label.
    """
    if not models.models:
        yield from engine.map(examine, samples, lost=_quarantine_lost)
        return
    chosen = tuple(model.model for model in models.models)
    known = tuple(KnownContents(model.cache.keys()) for model in models.models)
    batches = engine.map_batches(
        partial(SeeWork, models=chosen, known=known),
        samples,
        batch_size=shared_batch_size(chosen),
        lost=partial(_lost_batch, n_models=len(chosen)),
    )
    for batch in batches:
        examined = batch.examined
        if batch.lost is not None:
            examined = tuple(engine.map(examine, [batch.lost], lost=_quarantine_lost))
        for sample in examined:
            models.check(sample)
        # A quarantined sample has no hash, and no answer that would need one.
        hashes = [getattr(sample, "content_hash", NO_HASH) for sample in examined]
        buffer.add(packed_hashes(pa.array(hashes, pa.string())), batch.answers)
        yield from examined


def _lost_batch(sample: RawSample | ExaminedSample, *, n_models: int) -> SeenBatch:
    return SeenBatch(examined=(), answers=((),) * n_models, lost=sample)


def _quarantine_lost(sample: RawSample | ExaminedSample) -> RawSample:
    raw = sample.raw if isinstance(sample, ExaminedSample) else sample
    return raw.set_aside(WORKER_LOST, UNREADABLE_REASONS[WORKER_LOST])


EMBEDDED = "embedded"
MAX_KEPT_SIDE = 384
UNREADABLE = "the image cannot be read, or the segmenter fails on it"
OUTSIDE = "the box lies outside the image"
WHO = "segmenter"


def build_segmenter(
    settings: Settings, folder: Path, *, progress: Progress = no_progress
) -> Segmenter | None:
    """Return the segmenter that is configured, None if there is none; nothing is loaded yet.

    Args:
        settings: the project's settings.
        folder: where relative paths start.
        progress: told the bytes of the embedded segmenter's first download.

    Raises:
        ConfigError: if there is no such segmenter, or one of its options does not exist.
    """
    chosen = settings.segmenter
    if not chosen.name:
        return None
    options = with_provider(
        "segmenters",
        chosen.name,
        resolved_options(chosen.options, folder),
        settings.engine.provider,
    )
    if chosen.name == EMBEDDED:
        options.setdefault("progress", progress)
    built: Segmenter = build_part("segmenters", chosen.name, options, where="[segmenter] options")
    return built


@dataclass(frozen=True, kw_only=True, eq=False)
class ObjectMasks:
    """The masks of a data set's images; an image that cannot be read has a refused one and is tried again next time.

    Args:
        segmenter: the model.
        bench: where it is asked.
    """

    segmenter: Segmenter
    bench: ImageBench

    def of(self, rows: IntArray, class_name: str) -> list[ObjectMask]:
        """Return one mask a row, no larger than MAX_KEPT_SIDE on either side, of the object of a class.

        Raises:
            ModelError: if the segmenter cannot be used and nothing is known of these rows.
        """
        if not len(rows):
            return []
        said = self._texts.said(
            np.asarray(rows, dtype=np.int64),
            partial(_written_masks, self.segmenter, class_name),
            question=f"object of class {class_name}",
        )
        return [read_mask(text) for text in said]

    @cached_property
    def _texts(self) -> ImageTexts:
        return ImageTexts(
            self.bench,
            who=WHO,
            part=self.segmenter,
            identity=lambda: self.segmenter.segmenter_id,
            step="masks",
        )


Box = tuple[float, float, float, float]
"""Left, top, right and bottom of an object in pixels of its image."""
MARGIN = 0.12


def read_box(text: str) -> Box | None:
    """Return a box as a table has it: four numbers, left, top, right, bottom; None if these are none.

    >>> read_box("10, 20, 50.5, 60"), read_box("10 20 5 60"), read_box("")
    ((10.0, 20.0, 50.5, 60.0), None, None)
    """
    try:
        left, top, right, bottom = (float(part) for part in text.replace(",", " ").split())
    except ValueError:
        return None
    return (left, top, right, bottom) if right > left and bottom > top else None


def mask_in_box(
    segmenter: Segmenter, image: Image.Image, box: Box, *, class_name: str
) -> ObjectMask:
    """Return the mask of the object in a box: the segmenter sees the box with a margin around it, and what is outside is no object."""
    left, top, right, bottom = box
    across, down = MARGIN * (right - left), MARGIN * (bottom - top)
    window = (
        max(0, round(left - across)),
        max(0, round(top - down)),
        min(image.width, round(right + across)),
        min(image.height, round(bottom + down)),
    )
    if window[2] <= window[0] or window[3] <= window[1]:
        return ObjectMask(coverage=np.zeros((1, 1), dtype=np.float32), quality=0.0, refused=OUTSIDE)
    (found,) = segmenter.segment([image.crop(window)], class_names=[class_name])
    size = (window[2] - window[0], window[3] - window[1])
    part = Image.fromarray(np.round(np.clip(found.coverage, 0, 1) * 255).astype(np.uint8))
    coverage = np.zeros((image.height, image.width), dtype=np.float32)
    coverage[window[1] : window[3], window[0] : window[2]] = (
        np.asarray(part.resize(size, Image.Resampling.BILINEAR), dtype=np.float32) / 255
    )
    return ObjectMask(coverage=coverage, quality=found.quality, refused=found.refused)


def _written_masks(
    segmenter: Segmenter, class_name: str, images: Sequence[Image.Image]
) -> list[str]:
    found = segmenter.segment(images, class_names=[class_name] * len(images))
    return [write_mask(mask) for mask in found]


def write_mask(mask: ObjectMask) -> str:
    """Return a mask as text: what is kept of it, in steps of 1/255 and at most MAX_KEPT_SIDE pixels long."""
    levels = np.round(np.clip(mask.coverage, 0.0, 1.0) * 255).astype(np.uint8)
    image = Image.fromarray(levels)
    image.thumbnail((MAX_KEPT_SIDE, MAX_KEPT_SIDE), Image.Resampling.BOX)
    stream = io.BytesIO()
    image.save(stream, "PNG")
    return json.dumps(
        {
            "quality": round(float(mask.quality), 4),
            "refused": mask.refused,
            "coverage": base64.b64encode(stream.getvalue()).decode("ascii"),
        }
    )


def read_mask(text: str) -> ObjectMask:
    """Return a mask that was written; a text that is empty or no mask gives a refused one."""
    try:
        kept = json.loads(text)
        image = Image.open(io.BytesIO(base64.b64decode(kept["coverage"])))
        return ObjectMask(
            coverage=np.asarray(image, dtype=np.float32) / np.float32(255),
            quality=float(kept["quality"]),
            refused=str(kept["refused"]),
        )
    except (ValueError, KeyError, TypeError, OSError):
        return ObjectMask(
            coverage=np.zeros((1, 1), dtype=np.float32), quality=0.0, refused=UNREADABLE
        )
