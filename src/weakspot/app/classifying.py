"""The classifier under test on every sample of a project: probabilities, and features where it gives them; resumable."""

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from weakspot.app.classifier_work import ClassifiedBatch, classify_pictures
from weakspot.app.flushing import FlushClock, FlushPolicy
from weakspot.app.picture_requests import requests_for, rows_to_compute
from weakspot.core.arrays import AnyArray, FloatArray, IntArray
from weakspot.core.dataset import Dataset
from weakspot.core.errors import ModelError, NotEnoughDataError
from weakspot.core.roles import Classifier, ClassifierOutput, Engine
from weakspot.core.run import Progress, no_progress
from weakspot.core.samples import VectorSpace
from weakspot.embed.encode import UnreadablePicture, count_reasons
from weakspot.ingest.outcomes import class_columns, with_probabilities
from weakspot.store.names import packed_hashes
from weakspot.store.outcomes import OutcomeCache
from weakspot.store.project import ProjectStore


@dataclass(frozen=True, kw_only=True, eq=False)
class ClassifySettings:
    """How pictures are classified.

    Args:
        batch_size: pictures per call of the classifier.
        label_thresholds: multi-label decision thresholds by class; the others have the best F1 on validation.
        flush: when finished outcomes are written.
    """

    batch_size: int = 8
    label_thresholds: Mapping[str, float] = field(default_factory=dict)
    flush: FlushPolicy = field(default_factory=FlushPolicy)


@dataclass(frozen=True, kw_only=True, eq=False)
class Classified:
    """The data set with what the classifier said.

    Args:
        dataset: with probabilities, and predictions or thresholds; samples without a readable picture count as not predicted.
        own: the classifier's features in the order of the data set, or None when it gives none.
        n_new: pictures that went through the classifier now.
        n_outcomes: samples that have an outcome.
        unreadable: pictures that could not be read now; they are tried again next time.
    """

    dataset: Dataset
    own: VectorSpace | None
    n_new: int
    n_outcomes: int
    unreadable: tuple[UnreadablePicture, ...] = ()


def classify(
    project: ProjectStore,
    dataset: Dataset,
    classifier: Classifier,
    *,
    engine: Engine,
    progress: Progress = no_progress,
    settings: ClassifySettings | None = None,
) -> Classified:
    """Return outcomes for every sample; killed at any instant, the next call goes on where this one was.

    Raises:
        ModelError: if classifier and data set differ in task or classes, or the classifier gives no probabilities.
        NotEnoughDataError: if not one sample has an outcome in the end, with the reasons.
    """
    chosen = settings or ClassifySettings()
    work = _ClassifyWork(dataset=dataset, classifier=classifier, cache=project.outcomes(classifier.classifier_id))
    work.check()
    if not work.is_complete():
        with project.writing():
            work.run(engine, progress, chosen)
    return work.result(chosen.label_thresholds)


class _ClassifyWork:
    """One pass over the pictures that the classifier has not seen yet."""

    def __init__(self, *, dataset: Dataset, classifier: Classifier, cache: OutcomeCache) -> None:
        self._dataset = dataset
        self._classifier = classifier
        self._cache = cache
        self._keys = packed_hashes(dataset.table.column("content_hash"))
        self._waiting: list[tuple[IntArray, ClassifierOutput]] = []
        self._unreadable: list[UnreadablePicture] = []
        self._n_new = 0

    def check(self) -> None:
        """Refuse a classifier of another task or of other classes before any picture is read."""
        if self._classifier.task is not self._dataset.task:
            raise ModelError(
                f"The classifier is {self._classifier.task}, the data set is {self._dataset.task}.",
                where=self._classifier.classifier_id,
                fix="Set task in the classifier's options or in [data].",
            )
        names = self._classifier.class_names
        if names is not None:
            self._columns(len(names))

    def is_complete(self) -> bool:
        """Return whether everything was computed before; cheap."""
        layout = self._cache.layout
        return layout is not None and self._cache.is_complete(self._keys, self._columns(layout.n_classes))

    def run(self, engine: Engine, progress: Progress, settings: ClassifySettings) -> None:
        """Classify what is missing, writing as it goes."""
        rows = rows_to_compute(self._dataset, self._keys, self._cache.missing(self._keys))
        clock = FlushClock(settings.flush)
        progress(0, len(rows))
        requests = requests_for(self._dataset, rows)
        for batch in classify_pictures(requests, self._classifier, engine=engine, batch_size=settings.batch_size):
            self._take(batch)
            if clock.is_due(sum(len(positions) for positions, _ in self._waiting)):
                self._flush()
                clock.flushed()
            progress(self._n_new + len(self._unreadable), len(rows))
        self._flush()
        self._cache.compact()
        layout = self._cache.layout
        if layout is not None:
            self._cache.refresh(self._keys, self._columns(layout.n_classes))

    def result(self, label_thresholds: Mapping[str, float]) -> Classified:
        """Return the data set with everything that is stored."""
        layout = self._cache.layout
        found = None if layout is None else self._cache.probabilities(self._keys, self._columns(layout.n_classes))
        if found is None or found.n_missing == len(self._keys):
            raise self._nothing_classified()
        features = self._cache.features(self._keys)
        own_id = f"{self._classifier.classifier_id}/features"
        return Classified(
            dataset=with_probabilities(self._dataset, found.values, thresholds=label_thresholds),
            own=None if features is None else VectorSpace(encoder_id=own_id, vectors=features.values),
            n_new=self._n_new,
            n_outcomes=len(self._keys) - found.n_missing,
            unreadable=tuple(self._unreadable),
        )

    def _take(self, batch: ClassifiedBatch) -> None:
        self._unreadable.extend(batch.unreadable)
        if batch.output is not None:
            self._columns(batch.output.probabilities.shape[1])
            self._waiting.append((batch.positions, batch.output))
            self._n_new += len(batch.positions)

    def _flush(self) -> None:
        if self._waiting:
            positions = np.concatenate([part for part, _ in self._waiting])
            outputs = [output for _, output in self._waiting]
            features = _stacked_features(outputs)
            self._cache.append(self._keys[positions], np.concatenate([output.probabilities for output in outputs]), features)
        self._waiting = []

    def _columns(self, n_columns: int) -> IntArray:
        names, where = self._classifier.class_names, self._classifier.classifier_id
        return class_columns(self._dataset, names, n_columns=n_columns, classifier_id=where)

    def _nothing_classified(self) -> NotEnoughDataError:
        why = count_reasons(self._unreadable) or "they have no pictures"
        return NotEnoughDataError(
            f"Not one of {len(self._keys)} samples could be classified: {why}.",
            where=self._classifier.classifier_id,
            fix="Ingest again if files were moved; give predictions if there are no pictures.",
        )


def _stacked_features(outputs: list[ClassifierOutput]) -> FloatArray | None:
    features: list[AnyArray] = [output.features for output in outputs if output.features is not None]
    return np.concatenate(features) if features else None
