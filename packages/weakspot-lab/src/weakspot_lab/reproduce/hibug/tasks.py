"""The stand-ins of the paper's three tasks: two classes with a spurious feature, many classes in another place, few classes."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal, get_args

import numpy as np

from weakspot.core.arrays import BoolArray, IntArray
from weakspot.core.assistants import Assistants
from weakspot.core.dataset import Split
from weakspot.core.samples import SampleSet
from weakspot.run.attributes import told_from_words, with_attribute_columns
from weakspot.run.settings import Settings
from weakspot.testing.scenes import KINDS
from weakspot.words.attribute_columns import AssignedColumn
from weakspot_lab.bench.worlds import without_metadata
from weakspot_lab.reproduce.hibug.combinations import Combinations
from weakspot_lab.reproduce.protocol import Context
from weakspot_lab.reproduce.scenes.networks import (
    PixelWorld,
    scene_assistants,
    scene_samples,
    train_on,
)
from weakspot_lab.reproduce.scenes.world import SceneRules, scene_world, usual_values
from weakspot_lab.small_networks import ShapedNetwork, ShapedPlan

TaskName = Literal["two", "many", "few"]
TASKS: tuple[TaskName, ...] = get_args(TaskName)
PAPER_NAMES: Mapping[TaskName, str] = {"two": "Lipstick", "many": "RPC", "few": "ImageNet10"}
SIZES = {Split.TRAIN: 1500, Split.VALIDATION: 1500, Split.TEST: 1500, Split.POOL: 1500}
SMALL_SIZES = {Split.TRAIN: 260, Split.VALIDATION: 300, Split.TEST: 100, Split.POOL: 160}
BUDGETS: Mapping[TaskName, int] = {"two": 150, "many": 150, "few": 150}
"""A tenth of the pool, as the paper takes of two of its three pools."""
PLAN = ShapedPlan(shape="plain", width=12, epochs=10)
LARGER = ("medium", "large")


@dataclass(frozen=True, kw_only=True, eq=False)
class Task:
    """A task, the network that was trained for it, and what attributes say of every image.

    Args:
        name: which of the three.
        world: the images.
        assistants: who can embed words.
        plan: how its network is trained.
        network: the network under test.
    """

    name: TaskName
    world: PixelWorld
    assistants: Assistants
    plan: ShapedPlan
    network: ShapedNetwork

    @cached_property
    def samples(self) -> SampleSet:
        """Return all samples with attributes that were told from embeddings; what is true of them is taken away."""
        samples = scene_samples(self.world, self.network, name=self.name)
        samples = replace(samples, dataset=without_metadata(samples.dataset))
        found = [
            one
            for one in told_from_words(samples, self.assistants, Settings(), notes=[])
            if isinstance(one, AssignedColumn) and one.column is not None
        ]
        columns = {one.attribute.column: one.column for one in found if one.column is not None}
        dataset = with_attribute_columns(
            samples.dataset, columns, list(columns), told=list(columns)
        )
        return replace(samples, dataset=dataset)

    @cached_property
    def is_right(self) -> BoolArray:
        """Return which samples the network gets right [n]."""
        dataset = self.samples.dataset
        assert dataset.predictions is not None
        return np.asarray(dataset.predictions == dataset.labels, dtype=np.bool_)

    @cached_property
    def combinations(self) -> Combinations:
        """Return the slices: one a combination of attribute values."""
        return Combinations.of(self.samples.dataset)

    def rows(self, split: Split) -> IntArray:
        return self.world.rows(split)

    def error(self, network: ShapedNetwork) -> float:
        """Return the error rate on test images, in %."""
        rows = self.rows(Split.TEST)
        said = network.logits(self.world.images[rows]).argmax(axis=1)
        return float(100 * np.mean(said != self.world.dataset.labels[rows]))


def task_of(context: Context, name: TaskName) -> Task:
    """Return a task; its network is trained once a process."""
    return context.shared(f"task {name}", lambda: _made(context, name))


def _made(context: Context, name: TaskName) -> Task:
    world = scene_world(_rules(context, name))
    plan = replace(PLAN, epochs=context.request.pick(PLAN.epochs, 3))
    return Task(
        name=name,
        world=world,
        assistants=scene_assistants(),
        plan=plan,
        network=train_on(world, plan),
    )


def _rules(context: Context, name: TaskName) -> SceneRules:
    common = SceneRules(
        sizes=context.request.pick(SIZES, SMALL_SIZES),
        allowed={"size": LARGER},
        seed=context.seed_of(name),
    )
    if name == "two":
        usual = {
            "disc": ("grassy", "wavy", "brick", "striped"),
            "square": ("plain", "gradient", "checked", "dotted"),
        }
        return replace(common, classes=("disc", "square"), usual=usual, share=0.6)
    if name == "many":
        return replace(
            common,
            classes=("disc", "square", "triangle", "star", "cross"),
            colours=("red", "green", "blue", "white"),
            allowed={"size": LARGER, "colour": ("red", "green", "blue", "white")},
            allowed_in_training={"count": ("one",), "background": ("plain", "gradient")},
        )
    return replace(common, usual=usual_values("background", KINDS, 2), share=0.5)
