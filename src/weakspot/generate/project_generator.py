"""The image generator of a project, ready to generate, and what the project's models say of its images, each asked once."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import cast

import numpy as np
from PIL import Image

from weakspot.core.arrays import FloatArray, IntArray
from weakspot.core.dataset import Task
from weakspot.core.errors import ConfigError, DataError, StoreError
from weakspot.core.failures import FailureCriterion
from weakspot.core.generated import GenerationRequest, GenerationResult
from weakspot.core.registry import part_class
from weakspot.core.roles import (
    Classifier,
    ComposesImages,
    CostsMoney,
    Embedder,
    Engine,
    ImageGenerator,
)
from weakspot.core.run import Progress, no_progress
from weakspot.data.embed import ImageRequest, checked_rows, count_reasons, map_images
from weakspot.data.prediction_columns import class_columns
from weakspot.generate.own_images import Purpose, own_images
from weakspot.generate.service import GeneratorService, confirm_cost, service_for
from weakspot.run.embedding import KnowsEmbeddings, RememberingEmbedder
from weakspot.run.model_map import ImageBench, ObjectMasks, build_segmenter
from weakspot.run.models import ClassifierModel, checked_output, reads_embeddings
from weakspot.run.preparation import Prepared
from weakspot.run.settings import Settings
from weakspot.run.wiring import build_engine, build_part, engine_elsewhere, resolved_options
from weakspot.store.array_files import folder_name
from weakspot.store.embeddings import EmbeddingCache, KeyedRows
from weakspot.store.project import ProjectStore

IMAGES_A_CALL = 16
MIN_KEYS = 256
"""Fewer images are classified here: a model would have to be loaded in every worker for them."""

COMPOSE = "compose"


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


def with_generator(settings: Settings, name: str) -> Settings:
    """Return settings with another generator, if one is named: `NAME`, or `NAME:MODEL`.

    Options stay with the generator they were given for.

    Raises:
        ConfigError: if there is no such generator.
    """
    chosen = settings.generator
    name, _, model = name.partition(":")
    if not name:
        return settings
    part_class("image_generators", name)
    options = chosen.options if name == chosen.name else {}
    options = {**options, "model": model} if model else options
    return settings.model_copy(
        update={"generator": chosen.model_copy(update={"name": name, "options": options})}
    )


def build_generator(
    settings: Settings,
    folder: Path,
    prepared: Prepared | None = None,
    *,
    purpose: Purpose,
    store: ProjectStore | None = None,
) -> ImageGenerator:
    """Return the generator that is configured; one that composes gets the project's own images.

    Args:
        settings: of the project.
        folder: where relative paths start.
        prepared: the project's samples and models; None where there are none.
        purpose: what the images are for, which decides from which samples they are composed.
        store: keeps the masks of objects; None: the project in the folder.

    Raises:
        ConfigError: if there is no such generator, or one of its options does not exist.
        DataError: if it composes and there is no image to compose from.
    """
    chosen = settings.generator
    if not chosen.name:
        raise ConfigError(
            "No image generator is configured.",
            where="[generator] name",
            fix="Choose compose, diffusers, edit, edit-endpoint, endpoint or unclip.",
        )
    options = resolved_options(chosen.options, folder)
    built = build_part("image_generators", chosen.name, options, where="[generator] options")
    if isinstance(built, ComposesImages) and prepared is not None and not options.get("images"):
        masks = None
        segmenter = build_segmenter(settings, folder)
        if segmenter is not None:
            masks = ObjectMasks(
                segmenter=segmenter,
                bench=ImageBench(
                    dataset=prepared.samples.dataset,
                    store=store or ProjectStore(folder),
                    engine=build_engine(settings),
                ),
            )
        source = folder / settings.data.source
        masks_from = source if source.is_dir() else source.parent
        return built.with_images(
            own_images(prepared, purpose, settings, masks_from=masks_from, masks=masks)
        )
    return cast(ImageGenerator, built)


def expected_cost(settings: Settings, folder: Path, n_images: int) -> str:
    """Return what images cost at most, in a sentence; empty if the generator charges nothing or its price is not known."""
    if settings.generator.name == COMPOSE:
        return ""
    generator = build_generator(settings, folder, purpose="measure")
    cost = generator.cost_of(n_images) if isinstance(generator, CostsMoney) else None
    return (
        ""
        if cost is None
        else f"Up to {n_images} images cost up to {cost.amount:.2f} {cost.currency} ({cost.basis})."
    )


@dataclass(frozen=True, kw_only=True, eq=False)
class GenerationTools:
    """A project that images are generated for.

    Args:
        prepared: its samples and models.
        settings: its settings.
        criterion: what counts as a failure.
        store: its folder.
        generator: a ready generator, instead of the configured one.
        progress: told how far it is.
    """

    prepared: Prepared
    settings: Settings
    criterion: FailureCriterion
    store: ProjectStore
    generator: ImageGenerator | None = None
    progress: Progress = no_progress

    def image_generator(self, *, purpose: Purpose = "measure") -> ImageGenerator:
        return self.generator or build_generator(
            self.settings, self.store.root, self.prepared, purpose=purpose, store=self.store
        )

    def confirm_cost(self, image_generator: ImageGenerator, n_images: int) -> None:
        """Do nothing if so many images cost no more than was agreed to.

        Raises:
            ConfigError: with the cost, if they do.
        """
        confirm_cost(image_generator, n_images, self.settings.generator)

    def predictions(
        self, image_generator: ImageGenerator, *, progress: Progress = no_progress
    ) -> GeneratedPredictions:
        """Return what generates in the project's folder and asks its classifier."""
        return GeneratedPredictions.of(
            image_generator,
            self.prepared,
            self.store.generated,
            settings=self.settings,
            progress=progress,
        )
