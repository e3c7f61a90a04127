"""The classifier under test on every sample of a project: probabilities, and features where it gives them; resumable.

It may read embeddings instead of images.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from PIL import Image

from weakspot.core.arrays import AnyArray, FloatArray, IntArray
from weakspot.core.dataset import Dataset
from weakspot.core.errors import ModelError, NotEnoughDataError
from weakspot.core.roles import Classifier, ClassifierOutput, Engine
from weakspot.core.run import Progress, no_progress
from weakspot.core.samples import EmbeddingSpace
from weakspot.data.embed import Answers, UnreadableImage, checked_rows, count_reasons
from weakspot.data.prediction_columns import class_columns, with_probabilities
from weakspot.run.model_map import CachedModel, FlushPolicy, ModelCount, accept_all, map_missing
from weakspot.store.array_files import packed_hashes
from weakspot.store.project import ProjectStore


@dataclass(frozen=True, kw_only=True, eq=False)
class ClassifierModel:
    """A classifier as a model that images are put through; its columns are probabilities, and features if it gives some."""

    classifier: Classifier
    batch_size: int = 8

    @property
    def image_side(self) -> int | None:
        return self.classifier.image_side

    def prepare(self, image: Image.Image) -> AnyArray:
        return self.classifier.prepare(image)

    def answer(self, prepared: Sequence[AnyArray]) -> Answers:
        output = checked_output(self.classifier, prepared)
        columns = (output.probabilities, output.features)
        return Answers(
            places=np.arange(len(prepared)),
            columns=tuple(column for column in columns if column is not None),
        )


def checked_output(classifier: Classifier, prepared: Sequence[AnyArray]) -> ClassifierOutput:
    """Return what a classifier gives for prepared images.

    Raises:
        ModelError: if it is not one row of probabilities for each.
    """
    output, n_rows, where = classifier.classify(prepared), len(prepared), classifier.classifier_id
    probabilities = checked_rows(output.probabilities, n_rows, where=where)
    if probabilities.min(initial=0.0) < 0 or probabilities.max(initial=0.0) > 1 + 1e-4:
        raise ModelError(
            "The classifier's probabilities lie outside [0, 1].",
            where=where,
            given=[float(probabilities.min()), float(probabilities.max())],
            fix="If these are logits, say so in the classifier's options.",
        )
    features = (
        None if output.features is None else checked_rows(output.features, n_rows, where=where)
    )
    return ClassifierOutput(probabilities=probabilities, features=features)


@dataclass(frozen=True, kw_only=True, eq=False)
class ClassifySettings:
    """How images are classified.

    Args:
        batch_size: images per call of the classifier.
        label_thresholds: multi-label decision thresholds by class; the others have the best F1 on validation.
        flush: when finished predictions are written.
    """

    batch_size: int = 8
    label_thresholds: Mapping[str, float] = field(default_factory=dict)
    flush: FlushPolicy = field(default_factory=FlushPolicy)


@dataclass(frozen=True, kw_only=True, eq=False)
class Classified:
    """The data set with what the classifier said.

    Args:
        dataset: with probabilities, and predictions or thresholds; samples without a readable image count as not predicted.
        own: the classifier's features in the order of the data set, or None when it gives none.
        n_new: images that went through the classifier now.
        n_predictions: samples that have a prediction.
        unreadable: images that could not be read now; they are tried again next time.
    """

    dataset: Dataset
    own: EmbeddingSpace | None
    n_new: int
    n_predictions: int
    unreadable: tuple[UnreadableImage, ...] = ()


def classify(
    project: ProjectStore,
    dataset: Dataset,
    classifier: Classifier,
    *,
    engine: Engine,
    progress: Progress = no_progress,
    settings: ClassifySettings | None = None,
    done: ModelCount | None = None,
) -> Classified:
    """Return predictions for every sample; killed at any instant, the next call goes on where this one was.

    Args:
        project: keeps the predictions.
        dataset: the samples.
        classifier: the model.
        engine: where it runs.
        progress: called with how many images are done.
        settings: how images are classified.
        done: what a pass over the images has just done for this classifier; nothing is computed then.

    Raises:
        ModelError: if classifier and data set differ in task or classes, or the classifier gives no probabilities.
        NotEnoughDataError: if not one sample has a prediction in the end, with the reasons.
    """
    chosen = settings or ClassifySettings()
    work = ClassifyStage(project=project, dataset=dataset, classifier=classifier)
    work.check()
    if not work.is_complete():
        with project.writing():
            work.complete(engine, progress, chosen, done)
    return work.result(chosen.label_thresholds, done)


def cached_classifier(
    project: ProjectStore,
    classifier: Classifier,
    settings: ClassifySettings,
    *,
    check: Callable[[Answers], None] = accept_all,
) -> CachedModel:
    """Return a classifier as a model whose predictions are kept in a project."""
    model = ClassifierModel(classifier=classifier, batch_size=settings.batch_size)
    cache = project.predictions(classifier.classifier_id)
    return CachedModel(model=model, cache=cache, check=check)


class ClassifyStage:
    """The classifier under test on the samples of a project.

    Args:
        project: keeps the predictions.
        dataset: the samples.
        classifier: the model.
    """

    def __init__(self, *, project: ProjectStore, dataset: Dataset, classifier: Classifier) -> None:
        self._project = project
        self._dataset = dataset
        self._classifier = classifier
        self._cache = project.predictions(classifier.classifier_id)
        self._keys = packed_hashes(dataset.table.column("content_hash"))
        self._done = ModelCount()

    def check(self) -> None:
        """Refuse a classifier of another task or of other classes before any image is read."""
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
        return layout is not None and self._cache.is_complete(self._keys, self._columns(layout[0]))

    def cached(self, settings: ClassifySettings) -> CachedModel:
        """Return the classifier as a model that images can be put through, with answers checked against the data set."""
        return cached_classifier(
            self._project, self._classifier, settings, check=self._check_columns
        )

    def complete(
        self,
        engine: Engine,
        progress: Progress,
        settings: ClassifySettings,
        done: ModelCount | None,
    ) -> None:
        """Compute what is missing, unless a pass has just done that, and write the matrices anew."""
        if done is None:
            (done,) = map_missing(
                self._dataset,
                self._keys,
                [self.cached(settings)],
                engine=engine,
                progress=progress,
                flush=settings.flush,
            )
            self._cache = self._project.predictions(self._classifier.classifier_id)
        self._done = done
        self._cache.compact()
        layout = self._cache.layout
        if layout is not None:
            self._cache.refresh(self._keys, self._columns(layout[0]))

    def result(
        self, label_thresholds: Mapping[str, float], done: ModelCount | None = None
    ) -> Classified:
        """Return the data set with everything that is stored."""
        counted = done or self._done
        layout = self._cache.layout
        found = (
            None
            if layout is None
            else self._cache.probabilities(self._keys, self._columns(layout[0]))
        )
        if found is None or found.n_missing == len(self._keys):
            raise self._nothing_classified()
        features = self._cache.features(self._keys)
        own_id = f"{self._classifier.classifier_id}/features"
        return Classified(
            dataset=with_probabilities(self._dataset, found.values, thresholds=label_thresholds),
            own=None
            if features is None
            else EmbeddingSpace(encoder_id=own_id, embeddings=features.values),
            n_new=counted.n_new,
            n_predictions=len(self._keys) - found.n_missing,
            unreadable=tuple(counted.unreadable),
        )

    def _check_columns(self, given: Answers) -> None:
        self._columns(given.columns[0].shape[1])

    def _columns(self, n_columns: int) -> IntArray:
        names, where = self._classifier.class_names, self._classifier.classifier_id
        return class_columns(self._dataset, names, n_columns=n_columns, classifier_id=where)

    def _nothing_classified(self) -> NotEnoughDataError:
        why = count_reasons(self._done.unreadable) or "they have no images"
        return NotEnoughDataError(
            f"Not one of {len(self._keys)} samples could be classified: {why}.",
            where=self._classifier.classifier_id,
            fix="Ingest again if files were moved; give predictions if there are no images.",
        )


CHUNK_ROWS = 8192


def reads_embeddings(classifier: Classifier) -> bool:
    return getattr(classifier, "reads", "images") == "embeddings"


def classify_embeddings(
    dataset: Dataset,
    classifier: Classifier,
    joint: EmbeddingSpace | None,
    *,
    label_thresholds: Mapping[str, float],
) -> Classified:
    """Return predictions of every sample that has an embedding; it is cheap enough not to be stored."""
    where = classifier.classifier_id
    if joint is None:
        raise ModelError(
            "This classifier reads embeddings, and there are none.",
            where=where,
            fix="Configure an embedder.",
        )
    rows = np.flatnonzero(np.isfinite(joint.embeddings[:, 0]))
    if not len(rows):
        raise ModelError("Not one sample has an embedding to classify.", where=where)
    probabilities, features = _answers(classifier, joint, rows)
    columns = class_columns(
        dataset, classifier.class_names, n_columns=probabilities.shape[1], classifier_id=where
    )
    return Classified(
        dataset=with_probabilities(dataset, probabilities[:, columns], thresholds=label_thresholds),
        own=None
        if features is None
        else EmbeddingSpace(encoder_id=f"{where}/features", embeddings=features),
        n_new=len(rows),
        n_predictions=len(rows),
    )


def _answers(
    classifier: Classifier, joint: EmbeddingSpace, rows: IntArray
) -> tuple[FloatArray, FloatArray | None]:
    """Return probabilities and features of all samples, NaN where nothing is known; None unless every chunk has features."""
    probabilities = features = np.empty((0, 0), dtype=np.float32)
    has_features = True
    for start in range(0, len(rows), CHUNK_ROWS):
        chunk = rows[start : start + CHUNK_ROWS]
        output = classifier.classify(list(np.asarray(joint.embeddings[chunk])))
        has_features &= output.features is not None
        if not start:
            probabilities = np.full(
                (len(joint.embeddings), output.probabilities.shape[1]), np.nan, dtype=np.float32
            )
        if not start and output.features is not None:
            features = np.full(
                (len(joint.embeddings), output.features.shape[1]), np.nan, dtype=np.float32
            )
        probabilities[chunk] = output.probabilities
        if has_features and output.features is not None:
            features[chunk] = output.features
    return probabilities, features if has_features else None
