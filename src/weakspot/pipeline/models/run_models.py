"""The classifier and the embedder of a project, built on first use and shared by all passes of a run."""

from collections.abc import Callable
from functools import cached_property
from itertools import islice
from pathlib import Path

from weakspot.core.dataset import Task
from weakspot.core.errors import ModelError
from weakspot.core.roles import Classifier, Embedder
from weakspot.core.run import Progress
from weakspot.ingest.source import SampleSource
from weakspot.pipeline.models.classification import ClassifySettings, cached_classifier
from weakspot.pipeline.models.embedder_choice import EmbedderChoice, choose_embedder
from weakspot.pipeline.models.embedding import EmbedSettings, KnowsEmbeddings, cached_embedder
from weakspot.pipeline.models.embedding_classifiers import reads_embeddings
from weakspot.pipeline.models.image_pass import PassModels
from weakspot.pipeline.settings import Settings
from weakspot.pipeline.wiring import build_classifier
from weakspot.store.project import ProjectStore
from weakspot.store.shared_embeddings import SharedEmbeddings

FIRST_SAMPLES = 16
OWN_ENCODERS = "weakspot.backends."
GIVEN = "Using the embedder that was handed over."


class RunModels:
    """What looks at every image.

    Args:
        settings: the project's settings.
        folder: where relative paths start.
        classifier: a ready classifier, or None for the configured one.
        embedder: a ready embedder, or None for the configured one.
        progress_of: gives the progress callback of a stage.
    """

    def __init__(
        self,
        *,
        settings: Settings,
        folder: Path,
        classifier: Classifier | None,
        embedder: Embedder | None,
        progress_of: Callable[[str], Progress],
    ) -> None:
        self._settings = settings
        self._folder = folder
        self._given_classifier = classifier
        self._given_embedder = embedder
        self._progress_of = progress_of
        self._n_seen: dict[str, int] = {}

    @cached_property
    def classifier(self) -> Classifier | None:
        return self._given_classifier or build_classifier(self._settings.classifier, self._folder)

    @cached_property
    def embedder(self) -> EmbedderChoice:
        if self._given_embedder is not None:
            return EmbedderChoice(embedder=self._given_embedder, reason=GIVEN)
        return choose_embedder(
            self._settings.embedder,
            folder=self._folder,
            progress=self._progress_of("download weights"),
        )

    @property
    def has_own_embedder(self) -> bool:
        """Return whether an embedder was asked for, so that it is used even where there are no images."""
        return self._given_embedder is not None or self._settings.embedder.name != "auto"

    @property
    def image_classifier(self) -> Classifier | None:
        """Return the classifier if it looks at images."""
        found = self.classifier
        return None if found is None or reads_embeddings(found) else found

    @property
    def image_embedder(self) -> Embedder | None:
        """Return the embedder if it looks at images."""
        found = self.embedder.embedder
        return None if isinstance(found, KnowsEmbeddings) else found

    @property
    def classify_settings(self) -> ClassifySettings:
        return ClassifySettings(label_thresholds=self._settings.failure.label_thresholds)

    @property
    def embed_settings(self) -> EmbedSettings:
        return EmbedSettings(
            batch_size=self._settings.embedder.batch_size, shared=self._shared_embeddings
        )

    @cached_property
    def _shared_embeddings(self) -> SharedEmbeddings | None:
        """Return what projects share, for encoders of this package alone: their ids tell one model from any other."""
        if self._given_embedder is not None or self.image_embedder is None:
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
        data = self._settings.data
        if data.task != "auto" and classifier.task is not Task(data.task):
            raise ModelError(
                f"The classifier is {classifier.task}, the data set is {data.task}.",
                where=classifier.classifier_id,
                fix="Set task in the classifier's options or in [data].",
            )


def _has_images(source: SampleSource) -> bool:
    first = islice(source.read(0), FIRST_SAMPLES)
    return any(raw.location is not None or raw.data is not None for raw in first)
