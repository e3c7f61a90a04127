"""The classifier and the embedder of a project, built on first use and shared by all passes of a run.

The classifier gives probabilities of every sample, and features where it has them; it may read embeddings instead of images.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import islice
from pathlib import Path

import numpy as np
from PIL import Image

from weakspot.core.arrays import AnyArray, FloatArray, IntArray
from weakspot.core.dataset import Dataset, Task
from weakspot.core.errors import ModelError, NotEnoughDataError
from weakspot.core.roles import Classifier, ClassifierOutput, Embedder, Engine
from weakspot.core.run import Progress, no_progress
from weakspot.core.samples import EmbeddingSpace
from weakspot.data.embed import Answers, UnreadableImage, checked_rows, count_reasons
from weakspot.data.prediction_columns import class_columns, with_probabilities
from weakspot.data.source import SampleSource
from weakspot.models.embedded.encoder import EmbeddedDefault
from weakspot.models.onnx.session import fallback_notes
from weakspot.run.embedding import (
    EmbedSettings,
    KnowsEmbeddings,
    cached_embedder,
    choose_embedder,
)
from weakspot.run.model_map import (
    CachedModel,
    FlushPolicy,
    ModelCount,
    PassModels,
    accept_all,
    map_missing,
)
from weakspot.run.settings import Settings
from weakspot.run.wiring import build_classifier
from weakspot.store.array_files import folder_name, packed_hashes
from weakspot.store.embeddings import SharedEmbeddings
from weakspot.store.project import DATA_FOLDER, EMBEDDINGS_FOLDER, ProjectStore


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


FIRST_SAMPLES = 16
OWN_ENCODERS = "weakspot.models."
GIVEN = "Using the embedder that was handed over."


@dataclass(eq=False, kw_only=True)
class RunModels:
    """What looks at every image.

    Args:
        settings: the project's settings.
        folder: where relative paths start.
        ready_classifier: instead of the configured one.
        ready_embedder: instead of the configured one.
        progress_of: gives the progress callback of a stage.
    """

    settings: Settings
    folder: Path
    ready_classifier: Classifier | None = None
    ready_embedder: Embedder | None = None
    progress_of: Callable[[str], Progress] = lambda _stage: no_progress
    _n_seen: dict[str, int] = field(default_factory=dict, init=False)

    @cached_property
    def classifier(self) -> Classifier | None:
        return self.ready_classifier or build_classifier(
            self.settings.classifier, self.folder, provider=self.settings.engine.provider
        )

    @cached_property
    def _choice(self) -> tuple[Embedder, str]:
        if self.ready_embedder is not None:
            return self.ready_embedder, GIVEN
        embedder, reason = choose_embedder(
            self.settings.embedder,
            folder=self.folder,
            provider=self.settings.engine.provider,
            progress=self.progress_of("download weights"),
        )
        return _or_earlier(embedder, self.folder / DATA_FOLDER / EMBEDDINGS_FOLDER), reason

    @property
    def embedder(self) -> Embedder:
        return self._choice[0]

    @property
    def embedder_sentence(self) -> str:
        """Return why this embedder is used, what computes it, and what of the machine cannot be used."""
        said = getattr(self.image_embedder, "computed_by", "")
        computed = f"Computed by {said}." if said else ""
        notes = (f"{note}." for note in fallback_notes()) if said else ()
        return " ".join(filter(None, [self._choice[1], computed, *notes]))

    @property
    def has_own_embedder(self) -> bool:
        """Return whether an embedder was asked for, so that it is used even where there are no images."""
        return self.ready_embedder is not None or self.settings.embedder.name != "auto"

    @property
    def image_classifier(self) -> Classifier | None:
        """Return the classifier if it looks at images."""
        own = self.classifier
        return None if own is None or reads_embeddings(own) else own

    @property
    def image_embedder(self) -> Embedder | None:
        """Return the embedder if it looks at images."""
        return None if isinstance(self.embedder, KnowsEmbeddings) else self.embedder

    @property
    def classify_settings(self) -> ClassifySettings:
        classifier = self.image_classifier
        return ClassifySettings(
            label_thresholds=self.settings.failure.label_thresholds,
            batch_size=_images_per_call(classifier, ClassifySettings.batch_size),
        )

    @property
    def embed_settings(self) -> EmbedSettings:
        asked = self.settings.embedder.batch_size
        return EmbedSettings(
            batch_size=asked or _images_per_call(self.image_embedder, EmbedSettings.batch_size),
            shared=self._shared_embeddings,
        )

    def computed_by(self) -> dict[str, str]:
        """Return what computes on this machine, for models that say so; workers of a cluster choose for themselves."""
        models = {"embedder": self.image_embedder, "classifier": self.image_classifier}
        found = {name: getattr(model, "computed_by", "") for name, model in models.items()}
        return {f"{name} computed by": said for name, said in found.items() if said}

    @cached_property
    def _shared_embeddings(self) -> SharedEmbeddings | None:
        """Return what projects share, for encoders of this package alone: their ids tell one model from any other."""
        if self.ready_embedder is not None or self.image_embedder is None:
            return None
        is_ours = type(self.image_embedder).__module__.startswith(OWN_ENCODERS)
        return SharedEmbeddings.from_environment() if is_ours else None

    def in_pass(self, store: ProjectStore, source: SampleSource) -> PassModels:
        """Return what sees the images of a source while they are examined; nothing if its first samples have no image.

        Raises:
            ModelError: if the classifier is for another task than the data is set to, or has other classes than were set.
        """
        if not _has_images(source):
            return PassModels()
        classifier, models = self.image_classifier, []
        if classifier is not None:
            self._check(classifier)
            models.append(cached_classifier(store, classifier, self.classify_settings))
        embedder = self.image_embedder
        if embedder is not None:
            models.append(cached_embedder(store, embedder, self.embed_settings))
        return PassModels(models=tuple(models), classifier=classifier)

    def note_seen(self, counts: tuple[int, ...]) -> None:
        """Note how many images went through each of the models of `in_pass`."""
        classifier = self.image_classifier
        names = [] if classifier is None else [classifier.classifier_id]
        embedder = self.image_embedder
        names += [] if embedder is None else [embedder.encoder_id]
        self._n_seen = dict(zip(names, counts, strict=False)) if counts else {}

    def n_seen(self, model_id: str) -> int:
        """Return how many images went through a model while they were examined."""
        return self._n_seen.get(model_id, 0)

    def _check(self, classifier: Classifier) -> None:
        data = self.settings.data
        if data.task != "auto" and classifier.task is not Task(data.task):
            raise ModelError(
                f"The classifier is {classifier.task}, the data set is {data.task}.",
                where=classifier.classifier_id,
                fix="Set task in the classifier's options or in [data].",
            )


def _images_per_call(model: object, usual: int) -> int:
    """Return how many images a model takes at once, if it knows."""
    return int(getattr(model, "images_per_call", usual))


def _has_images(source: SampleSource) -> bool:
    first = islice(source.read(0), FIRST_SAMPLES)
    return any(raw.location is not None or raw.data is not None for raw in first)


def _or_earlier(embedder: Embedder, embeddings: Path) -> Embedder:
    """Return an embedder in float32 for a project that was embedded so and never in 8-bit integers: nothing is embedded again."""
    exact = (
        embedder.in_float32()
        if embeddings.is_dir() and isinstance(embedder, EmbeddedDefault)
        else None
    )
    if exact is None or (embeddings / folder_name(embedder.encoder_id)).exists():
        return embedder
    return exact if (embeddings / folder_name(exact.encoder_id)).exists() else embedder
