"""The classifier and the embedder of a project, built on first use and shared by all passes of a run."""

from collections.abc import Callable
from dataclasses import replace
from functools import cached_property
from itertools import islice
from pathlib import Path

from weakspot.core.dataset import Task
from weakspot.core.errors import ModelError
from weakspot.core.roles import Classifier, Embedder
from weakspot.core.run import Progress
from weakspot.data.source import SampleSource
from weakspot.models.embedded.encoder import EmbeddedDefault
from weakspot.models.onnx.session import fallback_notes
from weakspot.run.classification import ClassifySettings, cached_classifier, reads_embeddings
from weakspot.run.embedding import (
    EmbedderChoice,
    EmbedSettings,
    KnowsEmbeddings,
    cached_embedder,
    choose_embedder,
)
from weakspot.run.image_pass import PassModels
from weakspot.run.settings import Settings
from weakspot.run.wiring import build_classifier
from weakspot.store.array_files import folder_name
from weakspot.store.embeddings import SharedEmbeddings
from weakspot.store.project import DATA_FOLDER, EMBEDDINGS_FOLDER, ProjectStore

FIRST_SAMPLES = 16
OWN_ENCODERS = "weakspot.models."
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
        return self._given_classifier or build_classifier(
            self._settings.classifier, self._folder, provider=self._settings.engine.provider
        )

    @cached_property
    def embedder(self) -> EmbedderChoice:
        if self._given_embedder is not None:
            return EmbedderChoice(embedder=self._given_embedder, reason=GIVEN)
        choice = choose_embedder(
            self._settings.embedder,
            folder=self._folder,
            provider=self._settings.engine.provider,
            progress=self._progress_of("download weights"),
        )
        return _stay_with_earlier(choice, self._folder / DATA_FOLDER / EMBEDDINGS_FOLDER)

    @property
    def embedder_sentence(self) -> str:
        """Return why this embedder is used, what computes it, and what of the machine cannot be used."""
        said = getattr(self.image_embedder, "computed_by", "")
        computed = f"Computed by {said}." if said else ""
        notes = (f"{note}." for note in fallback_notes()) if said else ()
        return " ".join(filter(None, [self.embedder.reason, computed, *notes]))

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
        classifier = self.image_classifier
        return ClassifySettings(
            label_thresholds=self._settings.failure.label_thresholds,
            batch_size=_images_per_call(classifier, ClassifySettings.batch_size),
        )

    @property
    def embed_settings(self) -> EmbedSettings:
        asked = self._settings.embedder.batch_size
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


def _images_per_call(model: object, usual: int) -> int:
    """Return how many images a model takes at once, if it knows."""
    return int(getattr(model, "images_per_call", usual))


def _has_images(source: SampleSource) -> bool:
    first = islice(source.read(0), FIRST_SAMPLES)
    return any(raw.location is not None or raw.data is not None for raw in first)


def _stay_with_earlier(choice: EmbedderChoice, embeddings: Path) -> EmbedderChoice:
    """Return the choice in float32 for a project that was embedded so and never in 8-bit integers: nothing is embedded again."""
    if not embeddings.is_dir() or not isinstance(choice.embedder, EmbeddedDefault):
        return choice
    exact = choice.embedder.in_float32()
    if exact is None or (embeddings / folder_name(choice.embedder.encoder_id)).exists():
        return choice
    is_earlier = (embeddings / folder_name(exact.encoder_id)).exists()
    return replace(choice, embedder=exact) if is_earlier else choice
