"""Generators of rendered scenes: one that a refinement draws from, and one that a search gives captions."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from PIL import Image

from weakspot.core.arrays import ByteArray, FloatArray, child_seed, generator
from weakspot.core.dataset import Split
from weakspot.core.errors import RefusedPromptError
from weakspot.core.roles import GeneratedImage
from weakspot.project.refine.training import Prompt
from weakspot.testing.scenes import (
    FACTOR_NAMES,
    FACTORS,
    N_INSTANCES,
    factors_of,
    render,
    scene_from_codes,
    write_marker,
)
from weakspot_lab.reproduce.scenes.world import SIDE, Look, SceneWorld, rendered, softened
from weakspot_lab.small_networks import ShapedNetwork


@dataclass(kw_only=True, eq=False)
class SceneHabits:
    """What a generator draws where a prompt says nothing: what training scenes of the class show, as one that learnt from them.

    Args:
        world: whose training scenes they are.
    """

    world: SceneWorld
    _rows: dict[str, ByteArray] = field(default_factory=dict, init=False)

    def scene(self, prompt: str, class_name: str, random: np.random.Generator) -> ByteArray:
        """Return the codes [7] of a scene of which a prompt is true."""
        if class_name not in self._rows:
            dataset, rows = self.world.dataset, self.world.rows(Split.TRAIN)
            own = rows[dataset.labels[rows] == dataset.class_code(class_name)]
            self._rows[class_name] = self.world.codes[own]
        own_rows = self._rows[class_name]
        codes: ByteArray = own_rows[int(random.integers(len(own_rows)))].copy()
        for factor, values in factors_of(prompt).items():
            if factor != "kind":
                codes[FACTOR_NAMES.index(factor)] = FACTORS[factor].index(values[0])
        return codes


@dataclass(kw_only=True, eq=False)
class RenderedPrompts:
    """Images that prompts ask for, each drawn once for all networks of a world.

    Args:
        world: whose training scenes show what is usual.
        networks: by name.
        seed: of the images.
    """

    world: SceneWorld
    networks: Mapping[str, ShapedNetwork]
    seed: int = 0
    _pixels: dict[Prompt, ByteArray] = field(default_factory=dict, init=False)
    _features: dict[tuple[str, Prompt], FloatArray] = field(default_factory=dict, init=False)

    def __post_init__(self) -> None:
        self._habits = SceneHabits(world=self.world)

    @property
    def generator_id(self) -> str:
        return "rendered-scenes-1"

    def refusals(self, prompts: Sequence[Prompt]) -> Mapping[Prompt, RefusedPromptError]:
        """Return nothing: whatever a prompt does not say is drawn as usual."""
        del prompts
        return {}

    def generate(self, wanted: Mapping[Prompt, int]) -> None:
        """Draw so many images of every prompt."""
        for prompt, n_images in wanted.items():
            self.pixels(prompt, n_images)

    def pixels(self, prompt: Prompt, n_images: int) -> ByteArray:
        """Return the first images of a prompt [n, 32, 32, 3]."""
        known = self._pixels.get(prompt, np.zeros((0, SIDE, SIDE, 3), dtype=np.uint8))
        if len(known) < n_images:
            numbers = range(len(known), n_images)
            codes = [self._codes(prompt, number) for number in numbers]
            first = child_seed(self.seed, "rendered prompt", *prompt)
            instances = np.array([(first + number) % N_INSTANCES for number in numbers])
            drawn = rendered(np.array(codes, dtype=np.uint8), instances)
            known = self._pixels[prompt] = np.concatenate([known, drawn])
        return known[:n_images]

    def features(self, model: str, prompt: Prompt, n_images: int) -> FloatArray:
        """Return what a network makes of them [n, d]."""
        known = self._features.get((model, prompt))
        if known is None or len(known) < n_images:
            known = self.networks[model].features(self.pixels(prompt, n_images))
            self._features[model, prompt] = known
        return known[:n_images]

    def shown(self, prompt: Prompt, n_images: int) -> list[Image.Image]:
        return [Image.fromarray(one) for one in self.pixels(prompt, n_images)]

    def rejected(self) -> dict[str, int]:
        """Return nothing: there is no quality check."""
        return {}

    def _codes(self, prompt: Prompt, number: int) -> ByteArray:
        random = generator(self.seed, "rendered prompt", *prompt, str(number))
        return self._habits.scene(prompt.text, prompt.class_name, random)


@dataclass(kw_only=True, eq=False)
class SceneGenerator:
    """Draws what a caption says, in one of two looks; what it leaves open is drawn as training scenes of the class show it.

    Args:
        habits: what training scenes show.
        look: the first renderer, or the second.
    """

    habits: SceneHabits
    look: Look = "first"

    @property
    def generator_id(self) -> str:
        return f"scenes-{self.look}-1"

    def generate(self, prompts: Sequence[str], *, seeds: Sequence[int]) -> list[GeneratedImage]:
        """Return one image a prompt; a prompt must name a class."""
        return [self._image(prompt, seed) for prompt, seed in zip(prompts, seeds, strict=True)]

    def _image(self, prompt: str, seed: int) -> GeneratedImage:
        random = generator(seed, "reproduce", self.look, prompt)
        kinds = factors_of(prompt).get("kind", ())
        if not kinds:
            raise RefusedPromptError(
                f"“{prompt}” names no class.", fix="Begin with the baseline prompt."
            )
        codes = self.habits.scene(prompt, kinds[0], random)
        scene = scene_from_codes(codes, instance=int(random.integers(N_INSTANCES)))
        pixels = np.asarray(render(scene, side=SIDE, marked=False))
        if self.look == "second":
            pixels = softened(pixels[None])[0]
        return GeneratedImage(
            image=Image.fromarray(write_marker(pixels, scene)),
            prompt=prompt,
            seed=seed,
            generator_id=self.generator_id,
        )
