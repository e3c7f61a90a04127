"""Counterfactuals whose number of images is enlarged until they look like a finding: a generator and a classifier of the audit's own."""

import tempfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from PIL import Image

import weakspot
from audit.questions import Answer
from weakspot.core.dataset import Task
from weakspot.core.roles import ClassifierOutput, GeneratedImage
from weakspot.generate.counterfactuals import CounterfactualRequest

CLASSES = ("cup", "bowl")
SIDE, BLOCKS, CORNER = 16, 8, 2
WRONG, RIGHT = 250, 5


@dataclass(frozen=True, kw_only=True)
class GrowingPlan:
    """What the images show.

    Args:
        n_objects: different objects, shown again and again; 0 for another one in every image.
        failure_rate: of objects, with and without the change, each by its own lot: the change does nothing.
        counts: images asked for, one after another.
        slice_size: nothing is planted.
    """

    n_objects: int = 0
    failure_rate: float = 0.3
    counts: tuple[int, ...] = (10, 20, 40, 80, 150, 250)
    slice_size: int = 0


@dataclass(frozen=True, kw_only=True, eq=False)
class ObjectGenerator:
    """Draws an object on random blocks; a corner of the image says whether the classifier fails on it.

    Args:
        plan: how many objects there are, and how often they fail.
        seed: of the set.
    """

    plan: GrowingPlan
    seed: int

    @property
    def generator_id(self) -> str:
        """Return a name that is the same for the same images."""
        return f"audit-objects-{self.plan.n_objects}-{self.seed}"

    def generate(self, prompts, *, seeds):
        """Return an image a prompt; the same object fails or not with the same words, whatever surrounds it."""
        return [self._one(prompt, seed) for prompt, seed in zip(prompts, seeds, strict=True)]

    def _one(self, prompt: str, seed: int) -> GeneratedImage:
        number = seed % self.plan.n_objects if self.plan.n_objects else seed
        words = sum(prompt.encode()) + 1000 * len(prompt)
        lot = np.random.default_rng([self.seed, number, words]).random()
        blocks = np.random.default_rng([self.seed, seed]).integers(40, 220, (BLOCKS, BLOCKS, 3))
        pixels = blocks.astype(np.uint8).repeat(SIDE // BLOCKS, 0).repeat(SIDE // BLOCKS, 1)
        pixels[:CORNER, :CORNER] = WRONG if lot < self.plan.failure_rate else RIGHT
        return GeneratedImage(
            image=Image.fromarray(pixels),
            prompt=prompt,
            seed=seed,
            generator_id=self.generator_id,
            parents=(f"object-{number}",) if self.plan.n_objects else (),
        )


@dataclass(frozen=True, kw_only=True)
class CornerModel:
    """Classifier and embedder in one: takes an image with a bright corner for the second class."""

    class_names: tuple[str, ...] = CLASSES
    classifier_id: str = "audit-corner"
    encoder_id: str = "audit-blocks"
    task: Task = Task.SINGLE_LABEL
    image_side: int | None = None
    head: None = None
    dimension: int = 3
    has_text: bool = False

    def prepare(self, image):
        """Return the corner and the mean colour."""
        pixels = np.asarray(image, dtype=np.float32)
        return np.concatenate([[pixels[:CORNER, :CORNER].mean()], pixels.mean(axis=(0, 1))])

    def classify(self, prepared):
        """Return probabilities by the corner."""
        is_wrong = np.array([one[0] for one in prepared]) > (WRONG + RIGHT) / 2
        second = np.where(is_wrong, 0.9, 0.1).astype(np.float32)
        return ClassifierOutput(probabilities=np.stack([1 - second, second], axis=1), features=None)

    def embed_prepared(self, prepared):
        """Return unit vectors of mean colours."""
        colours = np.array([one[1:] for one in prepared], dtype=np.float32)
        return colours / np.linalg.norm(colours, axis=1, keepdims=True)

    def embed_texts(self, texts):
        """Never called: there is no text side."""
        raise NotImplementedError


def make_generator(plan: GrowingPlan, seed: int) -> ObjectGenerator:
    """Return the generator of one set."""
    return ObjectGenerator(plan=plan, seed=seed)


def ask_for_more(images: ObjectGenerator) -> Answer:
    """Ask for more and more images of a caption until its p-value is at most 0.05."""
    model = CornerModel()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        _write_samples(folder / "images", images)
        project = weakspot.Project.create(
            folder / "project",
            data=str(folder / "images"),
            classifier=model,
            embedder=model,
            settings=weakspot.Settings(generator={"off_class_margin": 0.0, "batch_size": 64}),
        )
        project.ingest()
        for count in images.plan.counts:
            request = CounterfactualRequest(
                class_name=CLASSES[0], captions=("on grass",), n_each=count
            )
            (rate,) = project.counterfactual(request, generator=images).series.rates
            if rate.p_value <= 0.05:
                return Answer(n_confirmed=1, n_false=1)
    return Answer(n_confirmed=0, n_false=0)


def _write_samples(folder: Path, images: ObjectGenerator) -> None:
    for number in range(8):
        place = folder / CLASSES[number % 2]
        place.mkdir(parents=True, exist_ok=True)
        (made,) = images.generate(["a sample"], seeds=[10_000_000 + number])
        made.image.save(place / f"{number}.png")
