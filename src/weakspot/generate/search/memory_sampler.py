"""A sampler that keeps everything in memory, for use from Python, tests and benchmarks."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from PIL import Image

from weakspot.core.arrays import AnyArray, FloatArray
from weakspot.core.errors import ConfigError, DataError
from weakspot.core.roles import (
    Captioner,
    Classifier,
    CompletesCaptions,
    Embedder,
    HasControls,
    ImageGenerator,
    ScoresCaptions,
)
from weakspot.generate.search.sentences import ASSEMBLED, WordSentences
from weakspot.generate.search.series import SampledImages, place_seed
from weakspot.words.captions import noun_of


@dataclass(kw_only=True, eq=False)
class MemorySampler:
    """Generates images with a generator, asks a classifier, an embedder and a captioner about them, and forgets nothing.

    No quality check is applied: every image that is ordered counts.

    Args:
        generator: makes the images.
        classifier: the model under test.
        embedder: gives embeddings of images and phrases.
        captioner: tells what is in an image; without one, captions are assembled from words that the embedder ranks.
        seed: the same seed gives the same images.
    """

    generator: ImageGenerator
    classifier: Classifier
    embedder: Embedder
    captioner: Captioner | None = None
    seed: int = 0
    _keys: dict[tuple[str, str], list[str]] = field(default_factory=dict, init=False, repr=False)
    _images: dict[str, Image.Image] = field(default_factory=dict, init=False, repr=False)
    _probabilities: dict[str, AnyArray] = field(default_factory=dict, init=False, repr=False)
    _embeddings: dict[str, AnyArray] = field(default_factory=dict, init=False, repr=False)
    _classes: dict[str, str] = field(default_factory=dict, init=False, repr=False)
    _words: dict[str, WordSentences] = field(default_factory=dict, init=False, repr=False)
    _completions: dict[tuple[str, str], str] = field(default_factory=dict, init=False, repr=False)

    @property
    def class_names(self) -> tuple[str, ...]:
        """The classes of the classifier.

        Raises:
            ConfigError: if the classifier does not know them.
        """
        names = self.classifier.class_names
        if names is None:
            raise ConfigError(
                "The classifier does not know its classes.",
                fix="Give one whose class_names are set.",
            )
        return names

    @property
    def caption_source(self) -> str:
        """The captioner's id, or that captions are assembled from words."""
        return ASSEMBLED if self.captioner is None else self.captioner.captioner_id

    @property
    def n_generated(self) -> int:
        """Return how many images were generated so far."""
        return sum(len(keys) for keys in self._keys.values())

    def generate(self, prompt: str, class_name: str, *, first: int, n: int) -> SampledImages:
        """Return places `first` to `first + n` of the series of a prompt."""
        series = self._keys.setdefault((prompt, class_name), [])
        missing = range(len(series), first + n)
        if missing:
            seeds = [place_seed(self.seed, class_name, prompt, place) for place in missing]
            made = self.generator.generate([prompt] * len(seeds), seeds=seeds)
            series.extend(self._kept([one.image for one in made], class_name))
        keys = tuple(series[first : first + n])
        empty = np.zeros((0, len(self.class_names)), dtype=np.float32)
        rows = [self._probabilities[key] for key in keys]
        return SampledImages(
            keys=keys, probabilities=np.stack(rows) if rows else empty, n_asked=n, rejected={}
        )

    def _kept(self, images: Sequence[Image.Image], class_name: str) -> list[str]:
        keys = [image_key(image) for image in images]
        said = self.classifier.classify(
            [self.classifier.prepare(image) for image in images]
        ).probabilities
        for key, image, row in zip(keys, images, said, strict=True):
            self._images[key], self._probabilities[key], self._classes[key] = image, row, class_name
        return keys

    def image(self, key: str) -> Image.Image:
        """Return an image that was generated.

        Raises:
            DataError: if there is none with this key.
        """
        if key not in self._images:
            raise DataError(
                "This image was not generated here.", given=key, fix="Generate it first."
            )
        return self._images[key]

    def embeddings(self, keys: Sequence[str]) -> FloatArray:
        """Return unit vectors [n, d] of images that were generated."""
        missing = [key for key in dict.fromkeys(keys) if key not in self._embeddings]
        if missing:
            found = self.embedder.embed_prepared(
                [self.embedder.prepare(self.image(key)) for key in missing]
            )
            self._embeddings.update(zip(missing, found, strict=True))
        rows = [self._embeddings[key] for key in keys]
        return np.stack(rows) if rows else np.zeros((0, self.embedder.dimension), dtype=np.float32)

    def control_for(self, prompt: str) -> str:
        """Return what to say instead of what a prompt changes; empty if the generator has no controls."""
        return self.generator.control_for(prompt) if isinstance(self.generator, HasControls) else ""

    def embed_texts(self, texts: Sequence[str]) -> FloatArray:
        """Return unit vectors [m, d] of phrases in the same space."""
        return self.embedder.embed_texts(texts)

    def completions(self, keys: Sequence[str], *, beginning: str) -> list[str]:
        """Return what follows the beginning in a caption of each image."""
        if self.captioner is None:
            words = WordSentences(
                embed_texts=self.embedder.embed_texts,
                class_name=self._classes[keys[0]] if keys else "thing",
            )
            return (
                self._words.setdefault(words.class_name, words).completion(self.embeddings(keys))
                if keys
                else []
            )
        missing = [key for key in dict.fromkeys(keys) if (key, beginning) not in self._completions]
        if missing:
            texts = self._said(self.captioner, missing, beginning)
            self._completions.update(
                {(key, beginning): text for key, text in zip(missing, texts, strict=True)}
            )
        return [self._completions[key, beginning] for key in keys]

    def _said(self, captioner: Captioner, keys: Sequence[str], beginning: str) -> list[str]:
        images = [self.image(key) for key in keys]
        if isinstance(captioner, CompletesCaptions):
            return captioner.complete(images, beginning=beginning)
        return captioner.caption(images, about=noun_of(self._classes[keys[0]]))

    def likelihoods(self, keys: Sequence[str], captions: Sequence[str]) -> FloatArray | None:
        """Return log P(caption | image) [n, m], or None when the captioner cannot say."""
        scorer: object = self.captioner
        return (
            scorer.log_likelihoods([self.image(key) for key in keys], captions)
            if isinstance(scorer, ScoresCaptions)
            else None
        )


def image_key(image: Image.Image) -> str:
    """Return the content hash of an image's pixels."""
    content = f"{image.mode} {image.size}".encode() + image.tobytes()
    return hashlib.sha256(content).hexdigest()[:32]
