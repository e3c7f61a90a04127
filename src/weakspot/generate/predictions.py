"""Generated images and what the models of a project say of them, each asked once."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path

import numpy as np
from PIL import Image

from weakspot.core.arrays import FloatArray, IntArray
from weakspot.core.dataset import Task
from weakspot.core.errors import ConfigError, DataError, StoreError
from weakspot.core.generated import GenerationRequest, GenerationResult
from weakspot.core.roles import Classifier, Embedder, Engine, ImageGenerator
from weakspot.core.run import Progress, no_progress
from weakspot.data.embed import ImageRequest, checked_rows, count_reasons, map_images
from weakspot.data.prediction_columns import class_columns
from weakspot.generate.service import GeneratorService, service_for
from weakspot.run.embedding import KnowsEmbeddings, RememberingEmbedder
from weakspot.run.models import ClassifierModel, checked_output, reads_embeddings
from weakspot.run.preparation import Prepared
from weakspot.run.settings import Settings
from weakspot.run.wiring import engine_elsewhere
from weakspot.store.array_files import folder_name
from weakspot.store.embeddings import EmbeddingCache, KeyedRows

IMAGES_A_CALL = 16
MIN_KEYS = 256
"""Fewer images are classified here: a model would have to be loaded in every worker for them."""


class GeneratedPredictions:
    """Generates images, and gives probabilities and embeddings of those that passed the quality check by content hash; kept in a folder.

    Args:
        service: generates.
        prepared: the project's classifier, embedder and classes.
        folder: where the numbers are kept.
        engine: where many images at once are classified; None: here.

    Raises:
        ConfigError: if the project has no classifier that can be asked about new images.
        DataError: if samples can have several labels, for which failures of a generated image have no meaning yet.
    """

    def __init__(
        self,
        service: GeneratorService,
        prepared: Prepared,
        folder: Path,
        *,
        engine: Engine | None = None,
    ) -> None:
        if prepared.classifier is None:
            raise ConfigError(
                "Without a classifier nothing can be said of new images.",
                where="[classifier]",
                fix="Configure one: predictions alone are not enough here.",
            )
        if prepared.samples.dataset.task is Task.MULTI_LABEL:
            raise DataError(
                "Failures are searched for with generated images in single-label tasks only."
            )
        self._classifier: Classifier = prepared.classifier
        self._given_embedder = prepared.embedder
        self._dataset = prepared.samples.dataset
        self._folder = folder
        self._service = service
        self._engine = engine
        self._kept: dict[str, GenerationResult] = {}

    @classmethod
    def of(
        cls,
        generator: ImageGenerator,
        prepared: Prepared,
        folder: Path,
        *,
        settings: Settings,
        progress: Progress = no_progress,
    ) -> "GeneratedPredictions":
        """Return predictions with a service as the settings want it; what its quality check has embedded is not embedded again."""
        embedder = prepared.embedder
        if embedder is not None and not isinstance(embedder, KnowsEmbeddings):
            embedder = RememberingEmbedder(embedder=embedder)
        names = prepared.samples.dataset.class_names
        service = service_for(
            settings, generator, folder, embedder=embedder, class_names=names, progress=progress
        )
        return cls(
            service, replace(prepared, embedder=embedder), folder, engine=engine_elsewhere(settings)
        )

    @property
    def class_names(self) -> tuple[str, ...]:
        return self._dataset.class_names

    @property
    def tally(self) -> dict[str, int]:
        """Return how many images of this generator were kept, and how many each quality check rejected."""
        return self._service.tally()

    @property
    def has_embeddings(self) -> bool:
        return self._given_embedder is not None and not isinstance(
            self._given_embedder, KnowsEmbeddings
        )

    def generate(self, requests: Sequence[GenerationRequest]) -> list[GenerationResult]:
        """Return what came of every request; of those that are kept, models can be asked from now on.

        Raises:
            RefusedPromptError: if the generator cannot generate what a prompt says.
        """
        generated = self._service.generate(requests)
        self._kept |= {one.content_hash: one for one in generated if one.is_kept}
        return generated

    def image(self, key: str) -> Image.Image:
        return self._service.image(self._kept[key])

    def probabilities(self, keys: Sequence[str]) -> FloatArray:
        """Return what the classifier says of some images [n, c]."""
        if not len(keys):
            return np.zeros((0, len(self.class_names)), dtype=np.float32)
        found = self._predictions.rows(keys, self._classify)
        return found[:, self._columns(found.shape[1])]

    def embeddings(self, keys: Sequence[str]) -> FloatArray:
        """Return unit vectors of some images [n, d]."""
        if not len(keys):
            return np.zeros((0, self._embedder.dimension), dtype=np.float32)
        return self._embeddings.rows(keys, self._embed)

    def flush(self) -> None:
        for name in ("_predictions", "_embeddings"):
            if name in self.__dict__:
                self.__dict__[name].flush()

    @property
    def _embedder(self) -> Embedder:
        if self._given_embedder is None or not self.has_embeddings:
            raise ConfigError(
                "Embeddings of new images are needed, and the project's embedder cannot make any.",
                where="[embedder]",
                fix="Configure an embedder of images.",
            )
        return self._given_embedder

    @cached_property
    def _predictions(self) -> KeyedRows:
        return self._rows("predictions", self._classifier.classifier_id)

    @cached_property
    def _embeddings(self) -> KeyedRows:
        return self._rows("embeddings", self._embedder.encoder_id)

    def _rows(self, kind: str, identity: str) -> KeyedRows:
        return KeyedRows(
            EmbeddingCache(self._folder / kind / folder_name(identity), identity=identity)
        )

    def _columns(self, n_columns: int) -> IntArray:
        names, where = self._classifier.class_names, self._classifier.classifier_id
        return class_columns(self._dataset, names, n_columns=n_columns, classifier_id=where)

    def _classify(self, keys: Sequence[str]) -> FloatArray:
        if reads_embeddings(self._classifier):
            return checked_output(self._classifier, list(self.embeddings(keys))).probabilities
        if self._engine is not None and len(keys) >= MIN_KEYS:
            return self._said_elsewhere(keys, self._engine)
        return self._in_parts(keys, self._said)

    def _said_elsewhere(self, keys: Sequence[str], engine: Engine) -> FloatArray:
        places = [self._service.place(self._kept[key]) for key in keys]
        requests = [
            ImageRequest(position=number, location=str(place))
            for number, place in enumerate(places)
        ]
        model = ClassifierModel(classifier=self._classifier, batch_size=IMAGES_A_CALL)
        batches = list(map_images(requests, [model], engine=engine))
        lost = [image for batch in batches for image in batch.unreadable]
        if lost:
            raise StoreError(
                f"Generated images cannot be read: {count_reasons(lost)}.", where=lost[0].location
            )
        return np.concatenate([given.columns[0] for batch in batches for given in batch.answers[0]])

    def _said(self, images: Sequence[Image.Image]) -> FloatArray:
        return checked_output(
            self._classifier, [self._classifier.prepare(image) for image in images]
        ).probabilities

    def _embed(self, keys: Sequence[str]) -> FloatArray:
        embedder = self._embedder

        def embed(images: Sequence[Image.Image]) -> FloatArray:
            made = embedder.embed_prepared([embedder.prepare(image) for image in images])
            return checked_rows(made, len(images), where=embedder.encoder_id)

        return self._in_parts(keys, embed)

    def _in_parts(
        self, keys: Sequence[str], ask: Callable[[Sequence[Image.Image]], FloatArray]
    ) -> FloatArray:
        starts = range(0, len(keys), IMAGES_A_CALL)
        return np.concatenate(
            [
                ask([self.image(key) for key in keys[start : start + IMAGES_A_CALL]])
                for start in starts
            ]
        )
