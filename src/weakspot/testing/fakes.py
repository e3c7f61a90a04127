"""Deterministic stand-ins for every model role, exact on planted images."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, cast

import numpy as np
from PIL import Image
from pydantic import JsonValue

from weakspot.core.arrays import AnyArray, ByteArray, FloatArray, IntArray, generator
from weakspot.core.dataset import Task
from weakspot.core.errors import ConfigError
from weakspot.core.heads import Head
from weakspot.core.roles import ClassifierOutput, GeneratedImage
from weakspot.testing.planted import (
    CLIP_DIMENSION,
    ENCODER_ID,
    OwnFeatures,
    PlantedProblem,
    PlantedWorld,
    nothing,
    phrase_embeddings,
    plant,
    rare,
    scene_embeddings,
    spurious,
)
from weakspot.testing.scenes import (
    FACTOR_NAMES,
    FACTORS,
    N_INSTANCES,
    SIDE,
    Scene,
    factors_of,
    read_marker,
    render,
    scene_from_phrase,
    words_of,
)

Schema = Mapping[str, JsonValue]


def propose(prompt: str, *, schema: Schema | None, seed: int) -> str:
    random = generator(seed, "planted text", prompt)
    if schema is None:
        return json.dumps(
            {"attributes": {name: list(FACTORS[name]) for name in _factors_asked(prompt)}}
        )
    return json.dumps(_fill(schema, "", prompt, random))


def _factors_asked(prompt: str) -> tuple[str, ...]:
    asked = set(words_of(prompt))
    named = tuple(name for name in FACTOR_NAMES if name in asked)
    return named or FACTOR_NAMES


def _fill(schema: Schema, key: str, prompt: str, random: np.random.Generator) -> JsonValue:
    if isinstance(choices := schema.get("enum"), list):
        return choices[int(random.integers(len(choices)))]
    kind = schema.get("type", "string")
    if kind == "object":
        properties = cast("Mapping[str, Schema]", schema.get("properties", {}))
        return {name: _fill(inner, name, prompt, random) for name, inner in properties.items()}
    if kind == "array":
        return _items(schema, key, prompt, random)
    plain: dict[str, JsonValue] = {"integer": 1, "number": 0.5, "boolean": True, "null": None}
    if isinstance(kind, str) and kind in plain:
        return plain[kind]
    return _words(key, prompt, 1, random)[0]


def _items(schema: Schema, key: str, prompt: str, random: np.random.Generator) -> list[JsonValue]:
    inner = schema.get("items", {})
    least, most = _number(schema.get("minItems"), 1), _number(schema.get("maxItems"), 8)
    if isinstance(inner, dict) and (inner.get("type", "string") != "string" or "enum" in inner):
        return [_fill(inner, key, prompt, random) for _ in range(max(least, min(most, 3)))]
    words = _words(key, prompt, max(least, most), random)
    return [words[place % len(words)] for place in range(max(least, min(most, len(words))))]


def _number(value: JsonValue, otherwise: int) -> int:
    return int(value) if isinstance(value, int | float) else otherwise


def _words(key: str, prompt: str, n_most: int, random: np.random.Generator) -> Sequence[str]:
    """Return at most n words that suit a key: values of a factor, names of factors, or whole phrases."""
    stem = key.lower().removesuffix("s")
    if stem in FACTORS:
        values: Sequence[str] = FACTORS[stem]
    elif stem in ("attribute", "factor", "name"):
        values = _factors_asked(prompt)
    elif stem in ("value", "word"):
        values = [
            value for name in _factors_asked(prompt) if name != "kind" for value in FACTORS[name]
        ]
    else:
        kinds = " and ".join(factors_of(prompt).get("kind", ()))
        values = [scene_from_phrase(kinds, generator=random).caption for _ in range(n_most)]
    order = random.permutation(len(values))[:n_most]
    return [values[place] for place in order]


def _prepare(image: Image.Image) -> IntArray:
    scene = read_marker(image)
    return np.array([*scene.codes, scene.instance], dtype=np.int64)


def _stack(prepared: Sequence[AnyArray]) -> tuple[ByteArray, IntArray]:
    rows = (
        np.stack(prepared)
        if len(prepared)
        else np.zeros((0, len(FACTOR_NAMES) + 1), dtype=np.int64)
    )
    return rows[:, :-1].astype(np.uint8), rows[:, -1].astype(np.int64)


@dataclass(frozen=True, kw_only=True)
class PlantedEmbedder:
    """Embeds planted images by what is in them, and phrases by the words they share with that world.

    Args:
        noise_scale: noise on every dimension, the same for the same image; with the default an image gets the very embedding that
            `PlantedWorld.embeddings` gives.
    """

    noise_scale: float = 0.05

    @property
    def encoder_id(self) -> str:
        return (
            ENCODER_ID
            if self.noise_scale == PlantedEmbedder().noise_scale
            else f"{ENCODER_ID}-noise-{self.noise_scale:g}"
        )

    @property
    def dimension(self) -> int:
        return CLIP_DIMENSION

    @property
    def image_side(self) -> int | None:
        """Full size, because the strip must be whole."""
        return None

    @property
    def has_text(self) -> bool:
        return True

    def prepare(self, image: Image.Image) -> AnyArray:
        return _prepare(image)

    def embed_prepared(self, prepared: Sequence[AnyArray]) -> FloatArray:
        """Return unit vectors [n, 64]."""
        codes, instances = _stack(prepared)
        return scene_embeddings(codes, instances, noise_scale=self.noise_scale)

    def embed_texts(self, texts: Sequence[str]) -> FloatArray:
        """Return unit vectors [m, 64] of phrases."""
        return phrase_embeddings(texts)

    def measured(self, texts: Sequence[str]) -> FloatArray | None:
        """Return 1 for every phrase [m]: images are embedded by what is in them."""
        return np.ones(len(texts), dtype=np.float32)


@dataclass(frozen=True, kw_only=True)
class PlantedCaptioner:
    """Says exactly what is in a planted image, goes on from a beginning, and knows how true a caption is.

    Args:
        word_cost: what every word of a caption takes from its log-likelihood.
        falsehood_cost: what every value that a caption names and the image does not show takes from it.
    """

    word_cost: float = 0.01
    falsehood_cost: float = 6.0

    @property
    def captioner_id(self) -> str:
        return "planted-captioner-1"

    def caption(self, images: Sequence[Image.Image], *, about: str | None = None) -> list[str]:
        """Return one sentence an image; if it is about a class that is not in the image, the sentence says so."""
        scenes = [read_marker(image) for image in images]
        return [
            scene.caption
            if about is None or _shows(scene, about)
            else f"{scene.caption}, no {about}"
            for scene in scenes
        ]

    def complete(self, images: Sequence[Image.Image], *, beginning: str) -> list[str]:
        """Return a short sentence for every factor but the kind, without what the beginning says already."""
        said = factors_of(beginning)
        return [_sentences(read_marker(image), said) for image in images]

    def log_likelihoods(self, images: Sequence[Image.Image], captions: Sequence[str]) -> FloatArray:
        """Return log P(caption | image) [n, m]: near 0 for a short caption that is true, far below for every false value."""
        scenes = [values_of(read_marker(image)) for image in images]
        named = [factors_of(caption) for caption in captions]
        costs = np.array(
            [self.word_cost * len(words_of(caption)) for caption in captions], dtype=np.float32
        )
        false = [[_n_false(values, said) for said in named] for values in scenes]
        n_false = np.array(false, dtype=np.float32).reshape(len(scenes), len(named))
        return np.asarray(
            -costs[None, :] - np.float32(self.falsehood_cost) * n_false, dtype=np.float32
        )


def _shows(scene: Scene, about: str) -> bool:
    return set(factors_of(about).get("kind", ())) <= set(scene.kinds)


SENTENCES: Mapping[str, str] = {
    "colour": "it is {}.",
    "size": "it is {}.",
    "count": "there is {}.",
    "position": "it is on the {}.",
    "background": "the background is {}.",
    "lighting": "it is {}.",
}


def _sentences(scene: Scene, said: Mapping[str, Sequence[str]]) -> str:
    told = {name: getattr(scene, name) for name in SENTENCES}
    return " ".join(
        SENTENCES[name].format(value)
        for name, value in told.items()
        if value not in said.get(name, ())
    )


def _n_false(values: Mapping[str, Sequence[str]], said: Mapping[str, Sequence[str]]) -> int:
    return sum(len(set(wanted) - set(values[name])) for name, wanted in said.items())


def values_of(scene: Scene) -> dict[str, tuple[str, ...]]:
    return {"kind": scene.kinds, **{name: (getattr(scene, name),) for name in FACTOR_NAMES[1:]}}


@dataclass(frozen=True, kw_only=True)
class PlantedAnswerer:
    """Answers questions about planted images.

    A question that names a factor ("what colour is it?") is answered with its value; one that names values ("is it a red disc?")
    with yes or no; any other with `unknown`.
    """

    @property
    def answerer_id(self) -> str:
        return "planted-answerer-1"

    def answer(self, images: Sequence[Image.Image], question: str) -> list[str]:
        return [self._answer(read_marker(image), question) for image in images]

    def _answer(self, scene: Scene, question: str) -> str:
        values = values_of(scene)
        asked = words_of(question)
        hinted = [QUESTION_WORDS[word] for word in asked if word in QUESTION_WORDS]
        factor = next(iter([word for word in asked if word in FACTOR_NAMES] + hinted), None)
        named = factors_of(question)
        if factor is not None and factor not in named:
            return " and ".join(values[factor])
        if not named:
            return "unknown"
        return (
            "yes"
            if all(set(wanted) <= set(values[name]) for name, wanted in named.items())
            else "no"
        )


QUESTION_WORDS: Mapping[str, str] = {
    "color": "colour",
    "object": "kind",
    "shape": "kind",
    "big": "size",
    "many": "count",
    "number": "count",
    "where": "position",
    "light": "lighting",
    "texture": "background",
    "behind": "background",
}


@dataclass(frozen=True, kw_only=True)
class PlantedTextGenerator:
    """Proposes attributes, values and phrases of the planted world, as JSON."""

    @property
    def generator_id(self) -> str:
        return "planted-text-1"

    def generate(
        self, prompt: str, *, schema: Mapping[str, JsonValue] | None = None, seed: int = 0
    ) -> str:
        """Return JSON that fits the schema, or `{"attributes": {factor: values}}` without one."""
        return propose(prompt, schema=schema, seed=seed)


@dataclass(frozen=True, kw_only=True)
class PlantedImageGenerator:
    """Draws what a prompt says; what it leaves open is drawn at random by seed.

    Args:
        side: width and height of the images.
    """

    side: int = SIDE

    @property
    def generator_id(self) -> str:
        return f"planted-image-1-{self.side}"

    def generate(self, prompts: Sequence[str], *, seeds: Sequence[int]) -> list[GeneratedImage]:
        if len(prompts) != len(seeds):
            raise ConfigError("Every prompt needs one seed.", given=(len(prompts), len(seeds)))
        return [self._generate(prompt, seed) for prompt, seed in zip(prompts, seeds, strict=True)]

    def _generate(self, prompt: str, seed: int) -> GeneratedImage:
        random = generator(seed, "planted image", prompt)
        scene = scene_from_phrase(
            prompt, generator=random, instance=int(random.integers(N_INSTANCES))
        )
        image = render(scene, side=self.side)
        return GeneratedImage(image=image, prompt=prompt, seed=seed, generator_id=self.generator_id)


@dataclass(frozen=True, kw_only=True, eq=False)
class PlantedClassifier:
    """A linear classifier on the features of planted images, as a world trained it.

    Args:
        class_names: the classes, in the order of the head's rows.
        head: the last layer.
        own: what its features are made of.
    """

    class_names: tuple[str, ...]
    head: Head
    own: OwnFeatures

    @property
    def classifier_id(self) -> str:
        content = (
            self.head.weights.tobytes()
            + self.head.bias.tobytes()
            + repr((self.class_names, self.own)).encode()
        )
        return f"planted-{hashlib.sha256(content).hexdigest()[:16]}"

    @property
    def task(self) -> Task:
        return self.head.task

    @property
    def image_side(self) -> int | None:
        """Full size, because the strip must be whole."""
        return None

    def prepare(self, image: Image.Image) -> AnyArray:
        return _prepare(image)

    def classify(self, prepared: Sequence[AnyArray]) -> ClassifierOutput:
        codes, instances = _stack(prepared)
        features = self.own.of(codes, instances)
        return ClassifierOutput(probabilities=self.head.probabilities(features), features=features)


def planted_classifier(world: PlantedWorld) -> PlantedClassifier:
    """Return the classifier of a world; on the world's images it says what the world's predictions say."""
    return PlantedClassifier(class_names=world.dataset.class_names, head=world.head, own=world.own)


def planted_world_classifier(
    *,
    problem: Literal["rare", "spurious", "nothing"] = "rare",
    strength: float = 0.01,
    n_samples: int = 900,
    seed: int = 0,
) -> PlantedClassifier:
    """Return the classifier that a world trained.

    Args:
        problem: what is planted.
        strength: share of the rare kind in training, or correlation of the cue.
        n_samples: size of the world.
        seed: of the world.
    """
    problems: dict[str, PlantedProblem] = {"nothing": nothing()}
    if problem == "rare":
        problems["rare"] = rare(strength)
    if problem == "spurious":
        problems["spurious"] = spurious(strength)
    return planted_classifier(plant(problems[problem], n_samples, seed=seed))
