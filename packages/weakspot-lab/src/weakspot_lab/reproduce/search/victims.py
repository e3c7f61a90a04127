"""The networks that are searched, those that what was found is put to, and the generators of both looks."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from PIL import Image

from weakspot.core.arrays import ByteArray, IntArray, child_seed
from weakspot.core.dataset import Split, Task
from weakspot.core.heads import Head
from weakspot.generate.search.memory_sampler import MemorySampler
from weakspot.repair.training.trainer import HeadTrainer
from weakspot.testing.fakes import PlantedCaptioner, PlantedEmbedder
from weakspot.testing.scenes import KINDS
from weakspot_lab.reproduce.protocol import Context
from weakspot_lab.reproduce.scenes.generators import SceneGenerator, SceneHabits
from weakspot_lab.reproduce.scenes.networks import SceneClassifier, train_on
from weakspot_lab.reproduce.scenes.world import (
    Look,
    SceneRules,
    SceneWorld,
    scene_world,
    usual_values,
    without_strip,
)
from weakspot_lab.small_networks import ShapedNetwork, ShapedPlan

SIZES = {Split.TRAIN: 2500, Split.VALIDATION: 800}
SMALL_SIZES = {Split.TRAIN: 600, Split.VALIDATION: 200}
SHARE = 0.8
FIRST, SECOND = "residual", "coarse"
"""The architectures that are searched: a residual network, and for the paper's transformer one that sees halved images."""
PLANS: dict[str, ShapedPlan] = {
    FIRST: ShapedPlan(shape="residual", width=12, epochs=10),
    f"{FIRST}, other seed": ShapedPlan(shape="residual", width=12, epochs=10, seed=1),
    SECOND: ShapedPlan(shape="coarse", width=16, epochs=12),
    f"{SECOND}, other seed": ShapedPlan(shape="coarse", width=16, epochs=12, seed=1),
    "plain": ShapedPlan(shape="plain", width=12, epochs=8),
    "wide": ShapedPlan(shape="wide", width=12, epochs=8),
}
PRETRAINED: dict[str, ShapedPlan] = {
    "plain, pretrained": ShapedPlan(shape="plain", width=12, epochs=10, seed=2),
    "wide, pretrained": ShapedPlan(shape="wide", width=12, epochs=10, seed=2),
}
"""Trained on other scenes, in which nothing is tied; only their last layer learns the scenes of the search."""
PENALTY = 1e-3


@dataclass(frozen=True, kw_only=True, eq=False)
class Examined:
    """A network that says what an image shows.

    Args:
        name: of the network.
        network: its features.
        head: another last layer; None for its own.
    """

    name: str
    network: ShapedNetwork
    head: Head | None = None

    def says(self, images: Sequence[Image.Image]) -> IntArray:
        """Return the class codes of images [n]."""
        return self.codes(
            without_strip(np.stack([np.asarray(one.convert("RGB")) for one in images]))
        )

    def codes(self, pixels: ByteArray) -> IntArray:
        """Return the class codes of images [n, 32, 32, 3] without a strip."""
        if self.head is None:
            return np.asarray(self.network.logits(pixels).argmax(axis=1))
        return np.asarray(self.head.probabilities(self.network.features(pixels)).argmax(axis=1))


def world_of(context: Context) -> SceneWorld:
    """Return the scenes that networks under search are trained on."""
    return context.shared("world", lambda: scene_world(_rules(context)))


def _rules(context: Context) -> SceneRules:
    return SceneRules(
        sizes=context.request.pick(SIZES, SMALL_SIZES),
        allowed={"size": ("medium", "large")},
        usual=usual_values("background", KINDS, 2),
        share=SHARE,
        seed=context.seed_of("world"),
    )


def network_of(context: Context, name: str) -> ShapedNetwork:
    """Return a network that is trained on the scenes, once a process."""
    plan = PLANS[name]
    plan = context.request.pick(plan, replace(plan, epochs=3, width=8))
    return context.shared(f"network {name}", lambda: train_on(world_of(context), plan))


def examined(context: Context) -> list[Examined]:
    """Return every network that sets of failures are put to."""
    names = context.request.pick(list(PLANS), [FIRST, f"{FIRST}, other seed", SECOND])
    found = [Examined(name=name, network=network_of(context, name)) for name in names]
    chosen = context.request.pick(list(PRETRAINED), ["plain, pretrained"])
    return found + [_pretrained(context, name) for name in chosen]


def _pretrained(context: Context, name: str) -> Examined:
    world = world_of(context)
    other = scene_world(
        replace(_rules(context), usual={}, share=0.0, seed=context.seed_of("other scenes"))
    )
    plan = replace(PRETRAINED[name], epochs=context.request.pick(PRETRAINED[name].epochs, 2))
    network = train_on(other, plan)
    rows = world.rows(Split.TRAIN)
    trained = HeadTrainer(penalty=PENALTY).train(
        network.features(world.images[rows]),
        world.dataset.labels[rows],
        np.ones(len(rows)),
        task=Task.SINGLE_LABEL,
        n_classes=world.dataset.n_classes,
    )
    return Examined(name=name, network=network, head=trained.head)


def sampler_of(context: Context, name: str, look: Look = "first") -> MemorySampler:
    """Return a sampler that shows generated scenes to a network."""
    world = world_of(context)
    classifier = SceneClassifier(
        network=network_of(context, name), class_names=world.dataset.class_names
    )
    return MemorySampler(
        generator=generator_of(context, look),
        classifier=classifier,
        embedder=PlantedEmbedder(noise_scale=0.1),
        captioner=PlantedCaptioner(),
        seed=context.seed_of("images", name, look),
    )


def generator_of(context: Context, look: Look = "first") -> SceneGenerator:
    return SceneGenerator(habits=SceneHabits(world=world_of(context)), look=look)


def fresh_images(
    context: Context, prompt: str, n_images: int, *, look: Look = "first"
) -> list[Image.Image]:
    """Return images of a prompt that no search has seen."""
    first = child_seed(context.seed_of("fresh", look), prompt)
    seeds = [(first + place) % 2**31 for place in range(n_images)]
    made = generator_of(context, look).generate([prompt] * n_images, seeds=seeds)
    return [one.image for one in made]
