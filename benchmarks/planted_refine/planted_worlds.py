"""Planted worlds laid out for refinement: models that fail on a background or a colour, and a generator whose scenes they read.

Scenes are not rendered here: a planted classifier reads nothing but the scene, and pixels cost a hundred times as much.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal, cast

import numpy as np
from PIL import Image
from pydantic import JsonValue

from weakspot.core.arrays import ByteArray, FloatArray, IntArray, child_seed, generator
from weakspot.core.assistants import Assistants
from weakspot.core.dataset import Dataset, Split, Task
from weakspot.core.errors import RefusedPromptError
from weakspot.core.heads import Head
from weakspot.core.samples import EmbeddingSpace, SampleSet
from weakspot.project.collective import FamilyMember
from weakspot.project.refine.training import Prompt
from weakspot.repair.bench import RepairBench
from weakspot.repair.training.trainer import HeadTrainer
from weakspot.run.preparation import EmbedResult, Prepared
from weakspot.run.settings import Settings
from weakspot.testing.fakes import PlantedClassifier, PlantedTextGenerator
from weakspot.testing.planted import (
    DEFAULT_CLASSES,
    FEATURE_DIMENSION,
    OwnFeatures,
    PlantedProblem,
    PlantedWorld,
    ProblemKind,
    noise,
    phrase_embeddings,
    plant,
)
from weakspot.testing.scenes import (
    FACTOR_NAMES,
    FACTORS,
    KINDS,
    N_INSTANCES,
    Scene,
    factors_of,
    render,
    scene_from_codes,
    scene_from_phrase,
)

Habits = Literal["open", "usual"]
"""What a generator generates where a prompt says nothing: anything, or what the training samples of the class usually show."""

STRENGTHS: Mapping[ProblemKind, float] = {"spurious": 0.95, "rare": 0.02}
N_SAMPLES = 4000
PENALTY = 1e-3


def refine_problem(kind: ProblemKind, factor: str, number: int) -> PlantedProblem:
    """Return a problem about a factor; class, rival and values change from number to number."""
    first = number % len(DEFAULT_CLASSES)
    rival = (first + 1 + number // len(DEFAULT_CLASSES) % (len(DEFAULT_CLASSES) - 1)) % len(
        DEFAULT_CLASSES
    )
    values = FACTORS[factor]
    return PlantedProblem(
        kind=kind,
        strength=STRENGTHS[kind],
        class_name=DEFAULT_CLASSES[first],
        rival=DEFAULT_CLASSES[rival],
        factor=factor,
        value=values[number % len(values)],
        usual_value=values[(number + 3) % len(values)],
    )


def refine_world(
    kind: ProblemKind, factor: str, number: int, *, seed: int, n_samples: int = N_SAMPLES
) -> PlantedWorld:
    """Return the world of a problem."""
    world_seed = child_seed(seed, "refine", kind, factor, str(number)) % 2**31
    return plant(refine_problem(kind, factor, number), n_samples, seed=world_seed)


@dataclass(frozen=True, kw_only=True)
class ModelFeatures:
    """The features of one model of a family: those of the world with noise that all share, and noise of its own.

    Args:
        problem: what the world is about.
        number: of the model; 0 is the world's own.
        shared: noise that an image has for every model.
        own: noise that it has for this one.
        cue: how strongly a spurious factor shows.
    """

    problem: PlantedProblem
    number: int = 0
    shared: float = 0.4
    own: float = 0.0
    cue: float = 1.7

    def of(self, codes: ByteArray, instances: IntArray) -> FloatArray:
        """Return features [n, 32]."""
        found = OwnFeatures(problem=self.problem, noise_scale=self.shared, cue_scale=self.cue).of(
            codes, instances
        )
        if self.own:
            found = found + np.float32(self.own) * noise(
                instances, FEATURE_DIMENSION, f"model {self.number}"
            )
        return np.asarray(found, dtype=np.float32)


def family_features(problem: PlantedProblem, n_models: int) -> tuple[ModelFeatures, ...]:
    """Return different models for the same images: each has noise of its own, and goes by the cue more or less."""
    cues = np.linspace(1.4, 2.0, n_models)
    return tuple(
        ModelFeatures(problem=problem, number=number, shared=0.3, own=0.27, cue=float(cue))
        for number, cue in enumerate(cues, start=1)
    )


def planted_member(
    world: PlantedWorld, features: ModelFeatures | None = None, *, name: str = "planted"
) -> FamilyMember:
    """Return a model of a world, its last layer trained on the training samples, ready to be refined."""
    own = features or ModelFeatures(problem=world.problem)
    embeddings = own.of(world.codes, world.instances)
    head, dataset = (world.head, world.dataset) if features is None else _trained(world, embeddings)
    spaces = {
        **world.spaces(),
        "features": EmbeddingSpace(encoder_id=f"{name}/features", embeddings=embeddings),
    }
    samples = SampleSet(
        dataset=dataset,
        rows=np.arange(len(world)),
        spaces=spaces,
        name="all samples",
        reference_rows=dataset.rows_of(Split.TRAIN),
    )
    prepared = Prepared(
        samples=samples,
        assistants=Assistants(embed_texts=phrase_embeddings, propose=_proposed),
        embedder=None,
        classifier=PlantedClassifier(
            class_names=dataset.class_names, head=head, own=cast(OwnFeatures, own)
        ),
        summary=EmbedResult(),
        inputs={},
    )
    return FamilyMember(name=name, bench=RepairBench.of(prepared, Settings()))


def _trained(world: PlantedWorld, embeddings: FloatArray) -> tuple[Head, Dataset]:
    dataset, rows = world.dataset, world.dataset.rows_of(Split.TRAIN)
    trainer = HeadTrainer(penalty=PENALTY)
    head = trainer.train(
        embeddings[rows],
        dataset.labels[rows],
        np.ones(len(rows)),
        task=Task.SINGLE_LABEL,
        n_classes=dataset.n_classes,
    ).head
    probabilities = head.probabilities(embeddings)
    return head, dataset.with_predictions(
        predictions=probabilities.argmax(axis=1), probabilities=probabilities
    )


def _proposed(prompt: str, schema: Mapping[str, JsonValue]) -> JsonValue:
    return cast(JsonValue, json.loads(PlantedTextGenerator().generate(prompt, schema=schema)))


@dataclass(kw_only=True, eq=False)
class PlantedImages:
    """A planted generator for the models of one world.

    Args:
        world: whose training samples show what is usual.
        models: the features of every model, by name.
        habits: what is generated where a prompt says nothing of the factor that the world is about.
        seed: of the images.
        refused: words that it cannot generate.
    """

    world: PlantedWorld
    models: Mapping[str, ModelFeatures]
    habits: Habits = "open"
    seed: int = 0
    refused: tuple[str, ...] = ()
    n_generated: int = field(default=0, init=False)

    @property
    def generator_id(self) -> str:
        """Name and habits."""
        return f"planted-scenes-1-{self.habits}"

    def refusals(self, prompts: Sequence[Prompt]) -> Mapping[Prompt, RefusedPromptError]:
        """Return prompts with a word that it cannot generate."""
        return {
            prompt: RefusedPromptError(
                f"“{prompt.text}” cannot be generated.", fix="Say it without the refused words."
            )
            for prompt in prompts
            if any(word in prompt.text for word in self.refused)
        }

    def generate(self, wanted: Mapping[Prompt, int]) -> None:
        """Count what is generated; scenes are made when they are asked for."""
        self.n_generated += sum(wanted.values())

    def scenes(self, prompt: Prompt, n_images: int) -> list[Scene]:
        """Return what the first images of a prompt show."""
        return [self._scene(prompt, number) for number in range(n_images)]

    def features(self, model: str, prompt: Prompt, n_images: int) -> FloatArray:
        """Return what a model makes of them [n, 32]."""
        scenes = self.scenes(prompt, n_images)
        codes = np.array([scene.codes for scene in scenes], dtype=np.uint8).reshape(
            -1, len(FACTOR_NAMES)
        )
        return self.models[model].of(
            codes, np.array([scene.instance for scene in scenes], dtype=np.int64)
        )

    def shown(self, prompt: Prompt, n_images: int) -> list[Image.Image]:
        """Return rendered images."""
        return [render(scene) for scene in self.scenes(prompt, n_images)]

    def rejected(self) -> dict[str, int]:
        """Return nothing: there is no quality check."""
        return {}

    def _scene(self, prompt: Prompt, number: int) -> Scene:
        random = generator(self.seed, "planted scene", *prompt, str(number))
        # Noise is generated in blocks of instances, so those of one prompt lie side by side.
        instance = (child_seed(self.seed, "planted scenes", *prompt) + number) % N_INSTANCES
        scene = scene_from_phrase(prompt.text, generator=random, instance=instance)
        factor = self.world.problem.factor
        if self.habits == "open" or factor in factors_of(prompt.text):
            return scene
        codes, place = scene.codes, FACTOR_NAMES.index(factor)
        codes[place] = random.choice(self._usual_values[prompt.class_name])
        return scene_from_codes(codes, instance=scene.instance)

    @cached_property
    def _usual_values(self) -> dict[str, ByteArray]:
        """Return the values of the factor that training samples of every class show."""
        codes = self.world.codes[self.world.dataset.rows_of(Split.TRAIN)]
        values = codes[:, FACTOR_NAMES.index(self.world.problem.factor)]
        return {
            name: values[codes[:, 0] == 1 << KINDS.index(name)]
            for name in self.world.dataset.class_names
        }
