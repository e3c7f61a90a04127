"""What others say of an adversarial set, and how far it is from real images."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, runtime_checkable

import numpy as np
from PIL import Image

from weakspot.backends.torch.inception_embedder import InceptionEmbedder
from weakspot.compare.distances import SetDistance, distances_to
from weakspot.compare.generated_findings import OtherClassifier
from weakspot.compare.transfer import TransferMatrix, transfer_matrix
from weakspot.core.arrays import AnyArray, FloatArray, IntArray
from weakspot.core.dataset import Split
from weakspot.core.errors import ModelError
from weakspot.core.roles import Embedder
from weakspot.core.seeding import generator
from weakspot.lab.adversarial.export import read_record
from weakspot.lab.adversarial.image_lists import ImageList, ListReader, ModelUnderTest
from weakspot.pipeline.models.embedding import KnowsEmbeddings
from weakspot.pipeline.preparation import CLIP, Prepared
from weakspot.store.project import ProjectStore

MOST_IMAGES = 10_000
TRAINING = "training samples"


@runtime_checkable
class GivesRawFeatures(Protocol):
    """An embedder that can give features before they are scaled to length one."""

    def raw_features(self, prepared: Sequence[AnyArray]) -> FloatArray:
        """Return features [n, d] as the network gives them."""


@dataclass(frozen=True, kw_only=True, eq=False)
class RawFeatures:
    """The features of an embedder as its embeddings, for distances alone.

    Args:
        embedder: whose `raw_features` are meant.
    """

    embedder: Embedder

    @property
    def encoder_id(self) -> str:
        return f"{self.embedder.encoder_id}/raw"

    @property
    def dimension(self) -> int:
        return self.embedder.dimension

    @property
    def image_side(self) -> int | None:
        return self.embedder.image_side

    @property
    def has_text(self) -> bool:
        return False

    def prepare(self, image: Image.Image) -> AnyArray:
        return self.embedder.prepare(image)

    def embed_prepared(self, prepared: Sequence[AnyArray]) -> FloatArray:
        if not isinstance(self.embedder, GivesRawFeatures):
            raise ModelError("This embedder gives no raw features.", where=self.embedder.encoder_id)
        return self.embedder.raw_features(prepared)

    def embed_texts(self, texts: Sequence[str]) -> FloatArray:
        raise ModelError("Raw features have no text side.", given=list(texts)[:3])


def distance_encoder(embedder: Embedder) -> Embedder:
    """Return an embedder as distances want it: with raw features where it gives them."""
    return RawFeatures(embedder=embedder) if isinstance(embedder, GivesRawFeatures) else embedder


def inception(given: str) -> Embedder:
    """Return the Inception network of a file, a folder or a timm name."""
    return InceptionEmbedder(path=given) if Path(given).exists() else InceptionEmbedder(model=given)


def model_of(folder: Path) -> ModelUnderTest:
    """Return the classifier of another project.

    Raises:
        ConfigError: if there is no project, or it has no classifier.
    """
    other = OtherClassifier.of(folder)
    return ModelUnderTest(name=other.name, classifier=other.classifier, embedder=other.embedder)


def measure_transfer(
    reader: ListReader,
    sets: Mapping[str, ImageList],
    models: Sequence[ModelUnderTest],
    *,
    places: Mapping[str, Path],
) -> TransferMatrix | None:
    """Return every labelled set on every classifier; None for one set on one classifier.

    Args:
        reader: asks classifiers.
        sets: by name.
        models: with different names.
        places: the folders of sets that may say which classifier they were made for.
    """
    labelled = {name: one for name, one in sets.items() if one.has_labels}
    if len(labelled) * len(models) < 2:  # noqa: PLR2004 - one number is no comparison
        return None
    made_for = {
        name: found.made_for
        for name in labelled
        if (found := read_record(places[name])) is not None
    }
    answers = {
        name: {model.name: reader.answers(one, model) for model in models}
        for name, one in labelled.items()
    }
    return transfer_matrix(answers, reader.class_names, made_for=made_for)


@dataclass(frozen=True, kw_only=True, eq=False)
class Ruler:
    """Measures sets against the reference images of a project: those to test on, else those to validate on.

    Args:
        reader: embeds sets.
        prepared: the project's samples and models.
        store: of the project.
        seed: decides which images are taken where there are very many.
    """

    reader: ListReader
    prepared: Prepared
    store: ProjectStore
    seed: int

    @property
    def reference_split(self) -> Split | None:
        dataset = self.prepared.samples.dataset
        return next(
            (split for split in (Split.TEST, Split.VALIDATION) if len(dataset.rows_of(split))), None
        )

    def measure(
        self, sets: Mapping[str, ImageList], network: Embedder | None
    ) -> tuple[tuple[SetDistance, ...], list[str]]:
        split = self.reference_split
        embedder = self.prepared.embedder
        if split is None:
            return (), [
                "The project has no test or validation samples, so no distance to real images is known."
            ]
        notes = (
            []
            if split is Split.TEST
            else ["There are no test samples; distances are measured to the validation samples."]
        )
        usable = None if embedder is None or isinstance(embedder, KnowsEmbeddings) else embedder
        if usable is None:
            notes.append(
                "The project's embedder cannot take new images, so distances in its space are not known."
            )
        encoders = [distance_encoder(one) for one in (usable, network) if one is not None]
        found = [row for encoder in encoders for row in self._in_space(encoder, split, sets)]
        notes += list(dict.fromkeys(row.warning for row in found if row.warning))
        return tuple(found), notes

    def _in_space(
        self, encoder: Embedder, split: Split, sets: Mapping[str, ImageList]
    ) -> tuple[SetDistance, ...]:
        embeddings = {
            name: self.reader.embeddings(one.only(self._some(len(one.dataset))), encoder)
            for name, one in sets.items()
        }
        rows = self._rows(Split.TRAIN)
        if len(rows):
            embeddings[TRAINING] = self._own(encoder, rows)
        return distances_to(
            self._own(encoder, self._rows(split)),
            embeddings,
            space=encoder.encoder_id,
            seed=self.seed,
        )

    def _rows(self, split: Split) -> IntArray:
        rows = self.prepared.samples.dataset.rows_of(split)
        return rows[self._some(len(rows))]

    def _some(self, n_rows: int) -> IntArray:
        if n_rows <= MOST_IMAGES:
            return np.arange(n_rows)
        return np.sort(
            generator(self.seed, "pictures to measure").permutation(n_rows)[:MOST_IMAGES]
        )

    def _own(self, encoder: Embedder, rows: IntArray) -> FloatArray:
        """Return embeddings of the project's samples; those of its own embedder are there already."""
        samples = self.prepared.samples
        if CLIP in samples.spaces and samples.space(CLIP).encoder_id == encoder.encoder_id:
            return np.asarray(samples.space(CLIP).embeddings[rows])
        own = ImageList(name="the project", store=self.store, dataset=samples.dataset)
        return self.reader.embeddings(own.only(rows), encoder)
