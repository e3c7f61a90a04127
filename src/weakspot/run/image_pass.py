"""One pass over the images of a source: each is read and decoded once for its hash, its examination and all models."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
import pyarrow as pa

from weakspot.core.arrays import AnyArray
from weakspot.core.dataset import ExaminedSample, RawSample
from weakspot.core.errors import ModelError
from weakspot.core.roles import Classifier, Engine
from weakspot.data.embed import (
    Answers,
    ImageModel,
    PreparedArrays,
    answer_all,
    prepare_for,
    shared_batch_size,
)
from weakspot.data.examine import Examined, examine
from weakspot.data.images import UNREADABLE_REASONS, WORKER_LOST, DecodedImage, UnreadableImageError
from weakspot.run.model_map import CachedModel, ResultBuffer
from weakspot.store.array_files import HASH_BYTES, HASH_DIGITS, packed_hashes

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
