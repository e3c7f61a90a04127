"""Pictures for the projects that are refined: drawn once, kept in the first project's folder, and shown to every classifier."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
from PIL import Image

from weakspot.app.classifier_work import checked_output
from weakspot.app.config import GeneratorSettings
from weakspot.app.embedding import KnowsVectors
from weakspot.app.preparation import OWN, Prepared
from weakspot.app.refining.pictures import Prompt
from weakspot.app.studio import Studio, confirm_cost
from weakspot.app.vector_classifying import reads_vectors
from weakspot.core.arrays import FloatArray
from weakspot.core.dataset import Split
from weakspot.core.drawn import DrawnPicture, PictureOrder, rejections
from weakspot.core.errors import ConfigError, DataError, ModelError, RefusedPromptError
from weakspot.core.roles import Classifier, ClassifierOutput, ImageGenerator
from weakspot.core.seeding import child_seed
from weakspot.store.keyed_rows import KeyedRows
from weakspot.store.names import folder_name
from weakspot.store.vectors import VectorCache

MOST_SEEDS = 2**31
PICTURES_A_CALL = 16
FEATURES = "features"

PictureOf = Callable[[str], Image.Image]


class ClassifierFeatures:
    """What is under a classifier's last layer for drawn pictures, by content hash; each is asked about once.

    Args:
        prepared: the project's models and samples.
        folder: where features are kept.

    Raises:
        ConfigError: if there is no classifier, or it reads vectors that nobody can make of new pictures.
    """

    def __init__(self, prepared: Prepared, folder: Path) -> None:
        if prepared.classifier is None:
            raise ConfigError(
                "Without a classifier nothing can be computed of generated pictures.", where="[classifier]", fix="Configure one."
            )
        self._classifier: Classifier = prepared.classifier
        self._embedder = prepared.embedder
        if reads_vectors(self._classifier) and (self._embedder is None or isinstance(self._embedder, KnowsVectors)):
            raise ConfigError(
                "The classifier reads vectors, and the project's embedder can make none of generated pictures.",
                where="[embedder]",
                fix="Configure an embedder of pictures.",
            )
        self._width = prepared.samples.space(OWN).vectors.shape[1]
        self._folder = folder

    def of(self, keys: Sequence[str], picture: PictureOf) -> FloatArray:
        """Return features [n, d] of pictures."""
        if not len(keys):
            return np.zeros((0, self._width), dtype=np.float32)
        return self._rows.rows(keys, lambda missing: self._computed([picture(key) for key in missing]))

    def flush(self) -> None:
        """Write what is only in memory."""
        self._rows.flush()

    @cached_property
    def _rows(self) -> KeyedRows:
        identity = f"{self._classifier.classifier_id}/features"
        return KeyedRows(VectorCache(self._folder / FEATURES / folder_name(identity), identity=identity))

    def _computed(self, pictures: Sequence[Image.Image]) -> FloatArray:
        parts = [pictures[start : start + PICTURES_A_CALL] for start in range(0, len(pictures), PICTURES_A_CALL)]
        found = [self._output(part).features for part in parts]
        known = [np.asarray(features, dtype=np.float32) for features in found if features is not None]
        if len(known) < len(found):
            raise ModelError(
                "The classifier gives no features of generated pictures, so nothing can be trained on them.",
                where=self._classifier.classifier_id,
            )
        return np.concatenate(known)

    def _output(self, pictures: Sequence[Image.Image]) -> ClassifierOutput:
        if reads_vectors(self._classifier) and self._embedder is not None:
            vectors = self._embedder.embed_prepared([self._embedder.prepare(picture) for picture in pictures])
            return checked_output(self._classifier, list(vectors))
        return checked_output(self._classifier, [self._classifier.prepare(picture) for picture in pictures])


@dataclass(frozen=True, kw_only=True, eq=False)
class DrawingTerms:
    """On what terms pictures are drawn.

    Args:
        generator: words to pictures.
        settings: section `generator`, for what it may cost.
        seed: of the project.
    """

    generator: ImageGenerator
    settings: GeneratorSettings
    seed: int


class ProjectPictures:
    """Pictures from a studio for the classifiers of one or more projects.

    Args:
        studio: draws, keeps and gates.
        terms: the generator behind it, what it may cost, and the seed.
        models: what every classifier makes of pictures, by project name.
        measured: ids of samples that are measured on; no picture may be composed from one of them.
    """

    def __init__(
        self, studio: Studio, terms: DrawingTerms, models: Mapping[str, ClassifierFeatures], measured: frozenset[str] = frozenset()
    ) -> None:
        self._studio = studio
        self._terms = terms
        self._models = models
        self._measured = measured
        self._drawn: dict[Prompt, list[DrawnPicture]] = {}

    @property
    def generator_id(self) -> str:
        """Who draws."""
        return self._studio.generator_id

    def refusals(self, prompts: Sequence[Prompt]) -> Mapping[Prompt, RefusedPromptError]:
        """Return the prompts that cannot be drawn: the first picture of each is drawn, which is kept like all others."""
        firsts = {prompt: self._orders(prompt, 1) for prompt in dict.fromkeys(prompts)}
        confirm_cost(self._terms.generator, len(firsts), self._terms.settings)
        try:
            self._studio.draw([order for orders in firsts.values() for order in orders])
        except RefusedPromptError:
            return {prompt: said for prompt, orders in firsts.items() if (said := self._refusal(orders)) is not None}
        return {}

    def draw(self, wanted: Mapping[Prompt, int]) -> None:
        """Draw so many pictures of every prompt; what was drawn before is not drawn again.

        Raises:
            ConfigError: if the cost is not agreed to, or there are more than may be drawn.
            DataError: if a picture was composed from a sample that is measured on.
        """
        orders = {prompt: self._orders(prompt, n_pictures) for prompt, n_pictures in wanted.items()}
        confirm_cost(self._terms.generator, sum(wanted.values()), self._terms.settings)
        every = iter(self._studio.draw([order for own in orders.values() for order in own]))
        for prompt, own in orders.items():
            self._drawn[prompt] = [next(every) for _ in own]
        self._refuse_measured()

    def features(self, model: str, prompt: Prompt, n_pictures: int) -> FloatArray:
        """Return a model's features [n, d] of the kept ones among the first pictures of a prompt."""
        kept = {drawn.content_hash: drawn for drawn in self._kept(prompt, n_pictures)}
        return self._models[model].of(list(kept), lambda key: self._studio.picture(kept[key]))

    def shown(self, prompt: Prompt, n_pictures: int) -> list[Image.Image]:
        """Return the first kept pictures of a prompt."""
        every = self._kept(prompt, len(self._drawn.get(prompt, ())))
        return [self._studio.picture(drawn) for drawn in every[:n_pictures]]

    def rejected(self) -> dict[str, int]:
        """Return how many pictures each gate rejected."""
        return rejections(drawn for own in self._drawn.values() for drawn in own)

    def flush(self) -> None:
        """Write features that are only in memory."""
        for model in self._models.values():
            model.flush()

    def _kept(self, prompt: Prompt, n_pictures: int) -> list[DrawnPicture]:
        return [drawn for drawn in self._drawn.get(prompt, ())[:n_pictures] if drawn.is_kept]

    def _orders(self, prompt: Prompt, n_pictures: int) -> list[PictureOrder]:
        seeds = [child_seed(self._terms.seed, "refine", *prompt, str(number)) % MOST_SEEDS for number in range(n_pictures)]
        return [PictureOrder(class_name=prompt.class_name, prompt=prompt.text, seed=seed) for seed in seeds]

    def _refusal(self, orders: Sequence[PictureOrder]) -> RefusedPromptError | None:
        try:
            self._studio.draw(orders)
        except RefusedPromptError as error:
            return error
        return None

    def _refuse_measured(self) -> None:
        parents = {parent for own in self._drawn.values() for drawn in own for parent in drawn.parents}
        if parents & self._measured:
            raise DataError(
                f"{len(parents & self._measured)} pictures were composed from validation or test samples of one of the projects.",
                fix="Refine projects together that have the same pictures in the same splits.",
            )


def measured_ids(prepared: Prepared) -> frozenset[str]:
    """Return the ids of the samples of a project that are measured on."""
    dataset = prepared.samples.dataset
    return frozenset(dataset.sample_ids(dataset.rows_of(Split.VALIDATION, Split.TEST)))
