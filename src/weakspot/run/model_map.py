"""The cached model map: what models give for images is kept by content, and only what is missing is computed."""

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
import pyarrow as pa

from weakspot.core.arrays import AnyArray, BoolArray, IntArray
from weakspot.core.dataset import Dataset
from weakspot.core.errors import ModelError
from weakspot.core.roles import Engine
from weakspot.core.run import Progress, no_progress
from weakspot.data.embed import Answers, ImageModel, ImageRequest, UnreadableImage, map_images

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
