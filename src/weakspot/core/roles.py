"""Every replaceable part of weakspot as one Protocol each, and what a part may be able to do beside its role."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol, TypeVar, runtime_checkable

from PIL import Image
from pydantic import JsonValue

from weakspot.core.arrays import AnyArray, FloatArray
from weakspot.core.assistants import NO_ASSISTANTS, Assistants
from weakspot.core.dataset import Task
from weakspot.core.evidence import Evidence
from weakspot.core.failures import FailureCriterion
from weakspot.core.generated import OwnImages
from weakspot.core.heads import Head, RepairMaterial, TrainingSelection
from weakspot.core.run import ClassNote
from weakspot.core.samples import SampleSet
from weakspot.core.slices import FailureSlice


@runtime_checkable
class KnowsParents(Protocol):
    """An image generator that can say without drawing which of a user's own samples an image would show."""

    def parents_of(self, prompt: str, seed: int) -> tuple[str, ...]:
        """Return the ids of the samples whose objects are shown; empty if it shows none of them.

        Raises:
            RefusedPromptError: if it cannot draw what the prompt says.
            ModelError: if it has no object to draw.
        """


@runtime_checkable
class HasViews(Protocol):
    """An image generator that can show the same object of a user's own images once more, in another way."""

    def seed_of_view(self, seed: int, number: int) -> int:
        """Return the seed of another view of what a seed shows: other crop, light and surroundings; number 0 is the seed itself."""


@runtime_checkable
class HasControls(Protocol):
    """An image generator that can draw an image with all that a change does to it but the change itself."""

    def control_for(self, prompt: str) -> str:
        """Return what to say instead of the change, for example `on its own background`; empty if there is nothing to control for."""


@runtime_checkable
class ChecksPrompts(Protocol):
    """An image generator that can say without drawing whether it can draw what a prompt says."""

    def check_prompt(self, prompt: str) -> None:
        """Do nothing if it can.

        Raises:
            RefusedPromptError: if not; the error names what it can.
        """


@dataclass(frozen=True, kw_only=True)
class Cost:
    """What a service charges.

    Args:
        amount: in the currency.
        currency: for example USD.
        basis: how the amount comes about, in words.
    """

    amount: float
    currency: str
    basis: str


@runtime_checkable
class CostsMoney(Protocol):
    """A part whose use is charged for; what it will cost is shown before it starts."""

    def cost_of(self, n_images: int) -> Cost | None:
        """Return what so many images cost; None if the price is not known."""


@runtime_checkable
class CompletesCaptions(Protocol):
    """A captioner that can go on from a given beginning, in short sentences, so that the caption is about a known label."""

    def complete(self, images: Sequence[Image.Image], *, beginning: str) -> list[str]:
        """Return what follows the beginning, one text of short sentences an image."""


@runtime_checkable
class ScoresCaptions(Protocol):
    """A captioner that can say how likely a given caption is."""

    def log_likelihoods(self, images: Sequence[Image.Image], captions: Sequence[str]) -> FloatArray:
        """Return log P(caption | image) [n, m]."""


Item = TypeVar("Item")
Result = TypeVar("Result")
Taken_contra = TypeVar("Taken_contra", contravariant=True)
Given_co = TypeVar("Given_co", covariant=True)


@dataclass(frozen=True, kw_only=True, eq=False)
class ClassifierOutput:
    """What a classifier says of a batch.

    Args:
        probabilities: [n, c], rows sum to one for single-label tasks.
        features: [n, d] input of the last linear layer, or None when the classifier cannot give it.
    """

    probabilities: FloatArray
    features: FloatArray | None = None


@runtime_checkable
class Classifier(Protocol):
    """The model under test. Called by the ingest stage, batch by batch.

    `prepare` runs in decoder threads and must not touch the model; `classify` runs in one thread and gets prepared items in order.
    """

    @property
    def classifier_id(self) -> str:
        """Name and hash of weights and pre-processing: two classifiers with the same id answer alike."""

    @property
    def class_names(self) -> tuple[str, ...] | None:
        """The classes in the order of the probability columns; None when only the project knows them."""

    @property
    def task(self) -> Task:
        """Single-label or multi-label."""

    @property
    def image_side(self) -> int | None:
        """Shortest image side in pixels that `prepare` needs; None for full size. JPEGs are decoded no larger than needed."""

    @property
    def head(self) -> Head | None:
        """The last linear layer, if it is known; repair starts from it."""

    def prepare(self, image: Image.Image) -> AnyArray:
        """Turn one RGB image into what `classify` takes."""

    def classify(self, prepared: Sequence[AnyArray]) -> ClassifierOutput:
        """Return probabilities, and features where possible, of prepared images."""


@runtime_checkable
class TakesHead(Protocol):
    """A classifier that can be written out with another last layer; what it was read from stays as it is."""

    def write_repaired(self, head: Head, folder: Path) -> tuple[Path, ...]:
        """Write the classifier with this last layer into a folder, in its own format, and return the files, the main one first.

        Raises:
            ModelError: if a file is there already, or the layer does not fit.
        """


@runtime_checkable
class Embedder(Protocol):
    """Images, and phrases if it can, to embeddings of one space. Called by the embed and describe stages."""

    @property
    def encoder_id(self) -> str:
        """Name and hash: embeddings with the same id can be compared and cached together."""

    @property
    def dimension(self) -> int:
        """Length of the embeddings."""

    @property
    def image_side(self) -> int | None:
        """Shortest image side in pixels that `prepare` needs; None for full size."""

    @property
    def has_text(self) -> bool:
        """Whether `embed_texts` works."""

    def prepare(self, image: Image.Image) -> AnyArray:
        """Turn one RGB image into what `embed_prepared` takes; runs in decoder threads."""

    def embed_prepared(self, prepared: Sequence[AnyArray]) -> FloatArray:
        """Return unit vectors [n, d] of prepared images."""

    def embed_texts(self, texts: Sequence[str]) -> FloatArray:
        """Return unit vectors [m, d] of phrases."""


@runtime_checkable
class Captioner(Protocol):
    """Images to sentences. Called by describers that want a second witness."""

    @property
    def captioner_id(self) -> str:
        """Name and hash."""

    def caption(self, images: Sequence[Image.Image], *, about: str | None = None) -> list[str]:
        """Return one sentence an image, about the given class if named."""


@runtime_checkable
class QuestionAnswerer(Protocol):
    """Images and a question to short answers. Called by attribute methods."""

    @property
    def answerer_id(self) -> str:
        """Name and hash."""

    def answer(self, images: Sequence[Image.Image], question: str) -> list[str]:
        """Return one short answer an image."""


@runtime_checkable
class TextGenerator(Protocol):
    """A prompt to text. Called for proposals (attributes, captions); answers are parsed as JSON, never executed."""

    @property
    def generator_id(self) -> str:
        """Name and hash."""

    def generate(
        self, prompt: str, *, schema: Mapping[str, JsonValue] | None = None, seed: int = 0
    ) -> str:
        """Return the answer; JSON that fits the schema when one is given."""


@dataclass(frozen=True, kw_only=True, eq=False)
class ObjectMask:
    """Where the object of a class is in an image.

    Args:
        coverage: [height, width] of the image that was given, from 0 (elsewhere) to 1 (object).
        quality: how well it is believed to fit, as an estimate of the overlap with the true mask (IoU), 0 to 1.
        refused: why it is not to be used; empty if it is.
    """

    coverage: FloatArray
    quality: float
    refused: str = ""


@runtime_checkable
class Segmenter(Protocol):
    """Images and the class that is in each to masks of the object. Called by composing generators and by measured properties."""

    @property
    def segmenter_id(self) -> str:
        """Name and hash: masks of the same id can be cached together."""

    @property
    def image_side(self) -> int | None:
        """Shortest image side in pixels that it makes use of; None for full size."""

    def segment(
        self, images: Sequence[Image.Image], *, class_names: Sequence[str]
    ) -> list[ObjectMask]:
        """Return one mask an image, refused where the object cannot be told."""


@dataclass(frozen=True, kw_only=True, eq=False)
class GeneratedImage:
    """A synthetic image with its provenance; it is marked synthetic for ever.

    Args:
        image: the image itself.
        prompt: the words it was made from.
        seed: the seed it was made with.
        generator_id: who made it.
        parents: ids of the samples that it was made from, for generators that compose.
        verdicts: what the generator itself says of it, by gate name: `pass`, or why it is not to be used (a safety checker, say).
    """

    image: Image.Image
    prompt: str
    seed: int
    generator_id: str
    parents: tuple[str, ...] = ()
    verdicts: Mapping[str, str] = field(default_factory=dict)


@runtime_checkable
class ImageGenerator(Protocol):
    """Words to images. Called by search and by synthetic repair."""

    @property
    def generator_id(self) -> str:
        """Name and hash."""

    def generate(self, prompts: Sequence[str], *, seeds: Sequence[int]) -> list[GeneratedImage]:
        """Return one image a prompt, the same for the same prompt and seed.

        Raises:
            RefusedPromptError: if a prompt says something that the generator cannot draw; the error names what it can.
        """


@runtime_checkable
class ComposesImages(Protocol):
    """An image generator that makes new images from a user's own ones, and cannot draw before it has them."""

    def with_images(self, own: OwnImages) -> ImageGenerator:
        """Return the same generator with these images."""


@runtime_checkable
class DecodesEmbeddings(Protocol):
    """An image generator that can also start from an embedding of an image encoder's space instead of words (unCLIP kinds)."""

    @property
    def space_id(self) -> str:
        """Name and hash of the encoder whose embeddings it decodes."""

    @property
    def dimension(self) -> int:
        """Length of these embeddings."""

    def embed_texts(self, texts: Sequence[str]) -> FloatArray:
        """Return unit vectors [m, d] of captions in that space."""

    def decode(
        self, embeddings: FloatArray, *, prompts: Sequence[str], seeds: Sequence[int]
    ) -> list[GeneratedImage]:
        """Return one image an embedding [n, d], with words beside it where the pipeline takes some."""


@dataclass(frozen=True, kw_only=True)
class Discovery:
    """What a discoverer found, and why it says nothing of some classes.

    Args:
        slices: best first.
        notes: why nothing is said of a class, or what to know about it.
        n_considered: how many candidates were looked at on the discovery samples, kept or not.
    """

    slices: tuple[FailureSlice, ...]
    notes: tuple[ClassNote, ...] = ()
    n_considered: int = 0


@runtime_checkable
class Discoverer(Protocol):
    """Embeddings and failures to failure slices. Called once a run with the discovery samples."""

    @property
    def is_baseline(self) -> bool:
        """Whether it is only there for comparison; what baselines find is never published."""

    def discover(
        self,
        samples: SampleSet,
        criterion: FailureCriterion,
        *,
        seed: int,
        assistants: Assistants = NO_ASSISTANTS,
    ) -> Discovery:
        """Return slices of the samples; it never sees the confirmation samples. Without assistants it does what it can."""


@runtime_checkable
class Describer(Protocol):
    """Slices to names. Called after discovery, with the same samples."""

    def describe(
        self,
        slices: Sequence[FailureSlice],
        samples: SampleSet,
        criterion: FailureCriterion,
        assistants: Assistants,
    ) -> tuple[FailureSlice, ...]:
        """Return the same slices, in the same order, with names."""


@runtime_checkable
class Verifier(Protocol):
    """Slices to evidence. Called once with everything that is to be tested, so that error rates hold over all of it."""

    def verify(
        self,
        slices: Sequence[FailureSlice],
        *,
        discovery: SampleSet,
        confirmation: SampleSet,
        criterion: FailureCriterion,
    ) -> tuple[Evidence, ...]:
        """Return one entry a slice, measured on confirmation samples; it refuses samples that discovery saw."""


@runtime_checkable
class Repairer(Protocol):
    """Confirmed slices to a weighted training set. The last layer is then trained on it, for repairs and baselines alike."""

    @property
    def is_baseline(self) -> bool:
        """Whether it is only there for comparison."""

    def select(self, slices: Sequence[FailureSlice], material: RepairMaterial) -> TrainingSelection:
        """Return which rows of the material to train on and how much each counts.

        Raises: NotEnoughDataError, if the material lacks what it needs (a pool, a budget, generated samples, group labels).
        """


@runtime_checkable
class BatchWork(Protocol[Taken_contra, Given_co]):
    """Work in batches with something that is costly to build, such as a model. Built once in every worker."""

    def prepare(self, item: Taken_contra) -> object:
        """Return one item ready for `run`: read, decoded, scaled. Called by many threads at once; never raises for a bad item."""

    def run(self, ready: Sequence[Any]) -> Given_co:
        """Return what comes of a batch of prepared items, at least one. Called by one thread at a time."""


@runtime_checkable
class Engine(Protocol):
    """Runs the heavy maps: in threads, in processes, or on a cluster. Same results, bit for bit; see `weakspot.core.registry`."""

    def map(
        self,
        function: Callable[[Item], Result],
        items: Iterable[Item],
        *,
        lost: Callable[[Item], Result] | None = None,
    ) -> Iterator[Result]:
        """Yield `function(item)` for every item, in the order of items, with a bounded number under way.

        Args:
            function: applied to each item; its errors are raised in their turn.
            items: taken as needed, possibly without end.
            lost: stands in for an item on which workers died again and again; without it that is an error.
        """

    def map_batches(
        self,
        build: Callable[[], BatchWork[Item, Result]],
        items: Iterable[Item],
        *,
        batch_size: int,
        lost: Callable[[Item], Result] | None = None,
    ) -> Iterator[Result]:
        """Yield what `build().run` makes of every `batch_size` consecutive items, in order.

        Items are prepared ahead while earlier batches run. Which items share a batch depends on their order alone, so that numbers
        are the same on every engine. Only after workers died on a batch are its items tried one by one, and give a result each.
        """
