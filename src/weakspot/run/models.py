"""The classifier and the embedder of a project, built on first use and shared by all passes of a run."""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from itertools import islice
from pathlib import Path

from weakspot.core.dataset import Task
from weakspot.core.errors import ModelError
from weakspot.core.roles import Classifier, Embedder
from weakspot.core.run import Progress, no_progress
from weakspot.data.source import SampleSource
from weakspot.models.embedded.encoder import EmbeddedDefault
from weakspot.models.onnx.session import fallback_notes
from weakspot.run.classification import ClassifySettings, cached_classifier, reads_embeddings
from weakspot.run.embedding import (
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
