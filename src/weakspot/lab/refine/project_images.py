"""Images for the projects that are refined: generated once, kept in the first project's folder, and shown to every classifier."""

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
from PIL import Image

from weakspot.core.arrays import FloatArray
from weakspot.core.dataset import Split
from weakspot.core.errors import ConfigError, DataError, ModelError, RefusedPromptError
from weakspot.core.generation_requests import GenerationRequest, GenerationResult, rejections
from weakspot.core.roles import ChecksPrompts, Classifier, ClassifierOutput, ImageGenerator
from weakspot.core.seeding import child_seed
from weakspot.generation.service.parents import SeedSeries
from weakspot.generation.service.service import GeneratorService, confirm_cost
from weakspot.lab.refine.request import Prompt
from weakspot.pipeline.models.classification import checked_output
from weakspot.pipeline.models.embedding import KnowsEmbeddings
from weakspot.pipeline.models.embedding_classifiers import reads_embeddings
from weakspot.pipeline.preparation import FEATURES, Prepared
from weakspot.pipeline.settings import GeneratorSettings
from weakspot.store.embeddings import EmbeddingCache
from weakspot.store.keyed_rows import KeyedRows
from weakspot.store.names import folder_name

MOST_SEEDS = 2**31
IMAGES_A_CALL = 16

ImageOf = Callable[[str], Image.Image]


class ClassifierFeatures:
    """What is under a classifier's last layer for generated images, by content hash; each is asked about once.

    Args:
        prepared: the project's models and samples.
        folder: where features are kept.

    Raises:
        ConfigError: if there is no classifier, or it reads embeddings that nobody can make of new images.
    """

    def __init__(self, prepared: Prepared, folder: Path) -> None:
        if prepared.classifier is None:
            raise ConfigError(
                "Without a classifier nothing can be computed of generated images.",
                where="[classifier]",
                fix="Configure one.",
            )
        self._classifier: Classifier = prepared.classifier
        self._embedder = prepared.embedder
        if reads_embeddings(self._classifier) and (
            self._embedder is None or isinstance(self._embedder, KnowsEmbeddings)
        ):
            raise ConfigError(
                "The classifier reads embeddings, and the project's embedder can make none of generated images.",
                where="[embedder]",
                fix="Configure an embedder of images.",
            )
        self._width = prepared.samples.space(FEATURES).embeddings.shape[1]
        self._folder = folder

    def of(self, keys: Sequence[str], image: ImageOf) -> FloatArray:
        """Return features [n, d] of images."""
        if not len(keys):
            return np.zeros((0, self._width), dtype=np.float32)
        return self._rows.rows(keys, lambda missing: self._compute([image(key) for key in missing]))

    def flush(self) -> None:
        self._rows.flush()

    @cached_property
    def _rows(self) -> KeyedRows:
        identity = f"{self._classifier.classifier_id}/features"
        return KeyedRows(
            EmbeddingCache(self._folder / FEATURES / folder_name(identity), identity=identity)
        )

    def _compute(self, images: Sequence[Image.Image]) -> FloatArray:
        parts = [
            images[start : start + IMAGES_A_CALL] for start in range(0, len(images), IMAGES_A_CALL)
        ]
        found = [self._output(part).features for part in parts]
        known = [
            np.asarray(features, dtype=np.float32) for features in found if features is not None
        ]
        if len(known) < len(found):
            raise ModelError(
                "The classifier gives no features of generated images, so nothing can be trained on them.",
                where=self._classifier.classifier_id,
            )
        return np.concatenate(known)

    def _output(self, images: Sequence[Image.Image]) -> ClassifierOutput:
        if reads_embeddings(self._classifier) and self._embedder is not None:
            embeddings = self._embedder.embed_prepared(
                [self._embedder.prepare(image) for image in images]
            )
            return checked_output(self._classifier, list(embeddings))
        return checked_output(
            self._classifier, [self._classifier.prepare(image) for image in images]
        )


@dataclass(frozen=True, kw_only=True, eq=False)
class GenerationTerms:
    """On what terms images are generated.

    Args:
        generator: words to images.
        settings: section `generator`, for what it may cost.
        seed: of the project.
    """

    generator: ImageGenerator
    settings: GeneratorSettings
    seed: int


class ProjectImages:
    """Images from a service for the classifiers of one or more projects.

    Args:
        service: generates, keeps and quality checks.
        terms: the generator behind it, what it may cost, and the seed.
        models: what every classifier makes of images, by project name.
        measured: ids of samples that are measured on; no image may be composed from one of them.
    """

    def __init__(
        self,
        service: GeneratorService,
        terms: GenerationTerms,
        models: Mapping[str, ClassifierFeatures],
        measured: frozenset[str] = frozenset(),
    ) -> None:
        self._service = service
        self._terms = terms
        self._models = models
        self._measured = measured
        self._generated: dict[Prompt, list[GenerationResult]] = {}

    @property
    def generator_id(self) -> str:
        return self._service.generator_id

    def refusals(self, prompts: Sequence[Prompt]) -> Mapping[Prompt, RefusedPromptError]:
        """Return the prompts that cannot be generated: the first image of each is generated, which is kept like all others."""
        wanted = list(dict.fromkeys(prompts))
        confirm_cost(self._terms.generator, len(wanted), self._terms.settings)
        try:
            self._service.generate(
                [request for prompt in wanted for request in self._requests(prompt, 1)]
            )
        except RefusedPromptError:
            return {
                prompt: said for prompt in wanted if (said := self._refusal(prompt)) is not None
            }
        return {}

    def cannot_draw(self, prompts: Sequence[Prompt]) -> frozenset[Prompt]:
        """Return the prompts that the generator says it cannot draw."""
        generator = self._terms.generator
        found = set()
        if isinstance(generator, ChecksPrompts):
            for prompt in prompts:
                try:
                    generator.check_prompt(prompt.text)
                except RefusedPromptError:
                    found.add(prompt)
        return frozenset(found)

    def generate(self, wanted: Mapping[Prompt, int]) -> None:
        """Generate so many images of every prompt; what was generated before is not generated again.

        Raises:
            ConfigError: if the cost is not agreed to, or there are more than may be generated.
            DataError: if an image was composed from a sample that is measured on.
        """
        requests = {prompt: self._requests(prompt, n_images) for prompt, n_images in wanted.items()}
        confirm_cost(self._terms.generator, sum(wanted.values()), self._terms.settings)
        every = iter(
            self._service.generate([request for own in requests.values() for request in own])
        )
        for prompt, own in requests.items():
            self._generated[prompt] = [next(every) for _ in own]
        self._refuse_measured()

    def features(self, model: str, prompt: Prompt, n_images: int) -> FloatArray:
        """Return a model's features [n, d] of the kept ones among the first images of a prompt."""
        kept = {generated.content_hash: generated for generated in self._kept(prompt, n_images)}
        return self._models[model].of(list(kept), lambda key: self._service.image(kept[key]))

    def features_of(self, model: str, images: Sequence[Image.Image]) -> FloatArray:
        """Return a model's features [n, d] of any images; each is asked about once."""
        keys = [
            hashlib.sha256(repr(one.size).encode() + one.tobytes()).hexdigest() for one in images
        ]
        by_key = dict(zip(keys, images, strict=True))
        return self._models[model].of(keys, by_key.__getitem__)

    def shown(self, prompt: Prompt, n_images: int) -> list[Image.Image]:
        every = self._kept(prompt, len(self._generated.get(prompt, ())))
        return [self._service.image(generated) for generated in every[:n_images]]

    def rejected(self) -> dict[str, int]:
        return rejections(generated for own in self._generated.values() for generated in own)

    def flush(self) -> None:
        for model in self._models.values():
            model.flush()

    def _kept(self, prompt: Prompt, n_images: int) -> list[GenerationResult]:
        return [
            generated
            for generated in self._generated.get(prompt, ())[:n_images]
            if generated.is_kept
        ]

    def _requests(self, prompt: Prompt, n_images: int) -> list[GenerationRequest]:
        return [
            GenerationRequest(class_name=prompt.class_name, prompt=prompt.text, seed=seed)
            for seed in self._seeds.places(*prompt, first=0, n=n_images)
        ]

    @cached_property
    def _seeds(self) -> SeedSeries:
        terms = self._terms
        return SeedSeries(
            terms.generator,
            lambda class_name, prompt, place: (
                child_seed(terms.seed, "refine", class_name, prompt, str(place)) % MOST_SEEDS
            ),
            least=terms.settings.least_parents,
        )

    def _refusal(self, prompt: Prompt) -> RefusedPromptError | None:
        try:
            self._service.generate(self._requests(prompt, 1))
        except RefusedPromptError as error:
            return error
        return None

    def _refuse_measured(self) -> None:
        parents = {
            parent
            for own in self._generated.values()
            for generated in own
            for parent in generated.parents
        }
        if parents & self._measured:
            raise DataError(
                f"{len(parents & self._measured)} images were composed from validation or test samples of one of the projects.",
                fix="Refine projects together that have the same images in the same splits.",
            )


def measured_ids(prepared: Prepared) -> frozenset[str]:
    dataset = prepared.samples.dataset
    return frozenset(dataset.sample_ids(dataset.rows_of(Split.VALIDATION, Split.TEST)))
