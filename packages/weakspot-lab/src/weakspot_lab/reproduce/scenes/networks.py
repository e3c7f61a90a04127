"""Small networks on rendered scenes, as classifiers and as members of a family."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, cast

import numpy as np
from PIL import Image
from pydantic import JsonValue

from weakspot.core.arrays import AnyArray, ByteArray, FloatArray, IntArray
from weakspot.core.assistants import Assistants
from weakspot.core.dataset import Dataset, Split, Task
from weakspot.core.heads import Head
from weakspot.core.roles import ClassifierOutput
from weakspot.core.samples import EmbeddingSpace, SampleSet
from weakspot.project.collective import FamilyMember
from weakspot.repair.bench import RepairBench
from weakspot.run.preparation import FEATURES, EmbedResult, Prepared
from weakspot.run.settings import Settings
from weakspot.testing.fakes import PlantedTextGenerator
from weakspot.testing.planted import ENCODER_ID, phrase_embeddings
from weakspot_lab.reproduce.scenes.world import SceneWorld, without_strip
from weakspot_lab.small_networks import ShapedNetwork, ShapedPlan, train_small_network


class PixelWorld(Protocol):
    """Images with pixels, labels, splits and joint embeddings."""

    @property
    def dataset(self) -> Dataset:
        """The samples, without predictions."""

    @property
    def images(self) -> ByteArray:
        """Pixels [n, h, w, 3]."""

    @property
    def embeddings(self) -> FloatArray:
        """Joint embeddings [n, d]."""

    def rows(self, *splits: Split) -> IntArray:
        """Return the rows of some splits."""


def train_on(world: PixelWorld, plan: ShapedPlan) -> ShapedNetwork:
    """Return a network trained on the training scenes of a world."""
    rows = world.rows(Split.TRAIN)
    return train_small_network(
        plan, world.images[rows], world.dataset.labels[rows], n_classes=world.dataset.n_classes
    )


@dataclass(frozen=True, kw_only=True, eq=False)
class SceneClassifier:
    """A small network as a classifier of rendered scenes; a strip that fakes read is covered before it looks.

    Args:
        network: the network.
        class_names: its classes.
    """

    network: ShapedNetwork
    class_names: tuple[str, ...]

    @property
    def classifier_id(self) -> str:
        weights, bias = self.network.last_layer
        content = hashlib.sha256(weights.tobytes() + bias.tobytes()).hexdigest()[:16]
        return f"{self.network.plan.name}-{content}"

    @property
    def task(self) -> Task:
        return Task.SINGLE_LABEL

    @property
    def image_side(self) -> int | None:
        return None

    @property
    def head(self) -> Head:
        weights, bias = self.network.last_layer
        return Head(weights=weights, bias=bias, task=Task.SINGLE_LABEL)

    def prepare(self, image: Image.Image) -> AnyArray:
        return np.asarray(image.convert("RGB"), dtype=np.uint8)

    def classify(self, prepared: Sequence[AnyArray]) -> ClassifierOutput:
        pixels = without_strip(np.stack([np.asarray(one, dtype=np.uint8) for one in prepared]))
        return ClassifierOutput(
            probabilities=self.network.probabilities(pixels), features=self.network.features(pixels)
        )


def with_answers(world: PixelWorld, network: ShapedNetwork) -> Dataset:
    """Return the data set of a world with what a network says of every scene."""
    probabilities = network.probabilities(world.images)
    return world.dataset.with_predictions(
        predictions=probabilities.argmax(axis=1), probabilities=probabilities
    )


def scene_samples(world: PixelWorld, network: ShapedNetwork, *, name: str) -> SampleSet:
    """Return all samples of a world as a network sees them."""
    dataset = with_answers(world, network)
    spaces = {
        "clip": EmbeddingSpace(encoder_id=ENCODER_ID, embeddings=world.embeddings, has_text=True),
        FEATURES: EmbeddingSpace(
            encoder_id=f"{name}/features", embeddings=network.features(world.images)
        ),
    }
    return SampleSet(
        dataset=dataset,
        rows=np.arange(len(dataset)),
        spaces=spaces,
        name="all samples",
        reference_rows=dataset.rows_of(Split.TRAIN),
    )


def scene_member(world: SceneWorld, network: ShapedNetwork, *, name: str) -> FamilyMember:
    """Return a network as a member of a family, ready to be refined."""
    classifier = SceneClassifier(network=network, class_names=world.dataset.class_names)
    prepared = Prepared(
        samples=scene_samples(world, network, name=name),
        assistants=scene_assistants(),
        embedder=None,
        classifier=classifier,
        summary=EmbedResult(),
        inputs={},
    )
    bench = RepairBench.of(prepared, Settings())
    return FamilyMember(name=name, bench=bench)


def scene_assistants() -> Assistants:
    """Return who can be asked about scenes: a text side, and a language model that proposes values."""
    return Assistants(embed_texts=phrase_embeddings, propose=_proposed)


def _proposed(prompt: str, schema: Mapping[str, JsonValue]) -> JsonValue:
    return cast(JsonValue, json.loads(PlantedTextGenerator().generate(prompt, schema=schema)))
