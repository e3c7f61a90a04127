"""A sampler that keeps everything in memory, for use from Python, tests and benchmarks."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from PIL import Image

from weakspot.core.arrays import AnyArray, FloatArray
from weakspot.core.errors import ConfigError, DataError
from weakspot.core.roles import Captioner, Classifier, CompletesCaptions, Embedder, ImageGenerator, ScoresCaptions
from weakspot.lexicon.captions import noun_of
from weakspot.search.sampling import Draws, place_seed
from weakspot.search.word_sentences import ASSEMBLED, WordSentences


@dataclass(kw_only=True, eq=False)
class MemorySampler:
    """Draws pictures with a generator, asks a classifier, an embedder and a captioner about them, and forgets nothing.

    No gate is applied: every picture that is ordered counts.

    Args:
        generator: makes the pictures.
        classifier: the model under test.
        embedder: gives vectors of pictures and phrases.
        captioner: tells what is in a picture; without one, captions are assembled from words that the embedder ranks.
        seed: the same seed gives the same pictures.
    """

    generator: ImageGenerator
    classifier: Classifier
    embedder: Embedder
    captioner: Captioner | None = None
    seed: int = 0
    _keys: dict[tuple[str, str], list[str]] = field(default_factory=dict, init=False, repr=False)
    _pictures: dict[str, Image.Image] = field(default_factory=dict, init=False, repr=False)
    _probabilities: dict[str, AnyArray] = field(default_factory=dict, init=False, repr=False)
    _vectors: dict[str, AnyArray] = field(default_factory=dict, init=False, repr=False)
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
            raise ConfigError("The classifier does not know its classes.", fix="Give one whose class_names are set.")
        return names

    @property
    def caption_source(self) -> str:
        """The captioner's id, or that captions are assembled from words."""
        return ASSEMBLED if self.captioner is None else self.captioner.captioner_id

    @property
    def n_drawn(self) -> int:
        """Return how many pictures were drawn so far."""
        return sum(len(keys) for keys in self._keys.values())

    def draw(self, prompt: str, class_name: str, *, first: int, n: int) -> Draws:
        """Return places `first` to `first + n` of the series of a prompt."""
        series = self._keys.setdefault((prompt, class_name), [])
        missing = range(len(series), first + n)
        if missing:
            seeds = [place_seed(self.seed, class_name, prompt, place) for place in missing]
            made = self.generator.generate([prompt] * len(seeds), seeds=seeds)
            series.extend(self._kept([one.picture for one in made], class_name))
        keys = tuple(series[first : first + n])
        empty = np.zeros((0, len(self.class_names)), dtype=np.float32)
        rows = [self._probabilities[key] for key in keys]
        return Draws(keys=keys, probabilities=np.stack(rows) if rows else empty, n_asked=n, rejected={})

    def _kept(self, pictures: Sequence[Image.Image], class_name: str) -> list[str]:
        keys = [picture_key(picture) for picture in pictures]
        said = self.classifier.classify([self.classifier.prepare(picture) for picture in pictures]).probabilities
        for key, picture, row in zip(keys, pictures, said, strict=True):
            self._pictures[key], self._probabilities[key], self._classes[key] = picture, row, class_name
        return keys

    def picture(self, key: str) -> Image.Image:
        """Return a picture that was drawn.

        Raises:
            DataError: if there is none with this key.
        """
        if key not in self._pictures:
            raise DataError("This picture was not drawn here.", given=key, fix="Draw it first.")
        return self._pictures[key]

    def vectors(self, keys: Sequence[str]) -> FloatArray:
        """Return unit vectors [n, d] of pictures that were drawn."""
        missing = [key for key in dict.fromkeys(keys) if key not in self._vectors]
        if missing:
            found = self.embedder.embed_prepared([self.embedder.prepare(self.picture(key)) for key in missing])
            self._vectors.update(zip(missing, found, strict=True))
        rows = [self._vectors[key] for key in keys]
        return np.stack(rows) if rows else np.zeros((0, self.embedder.dimension), dtype=np.float32)

    def embed_texts(self, texts: Sequence[str]) -> FloatArray:
        """Return unit vectors [m, d] of phrases in the same space."""
        return self.embedder.embed_texts(texts)

    def completions(self, keys: Sequence[str], *, beginning: str) -> list[str]:
        """Return what follows the beginning in a caption of each picture."""
        if self.captioner is None:
            words = WordSentences(embed_texts=self.embedder.embed_texts, class_name=self._classes[keys[0]] if keys else "thing")
            return self._words.setdefault(words.class_name, words).completion(self.vectors(keys)) if keys else []
        missing = [key for key in dict.fromkeys(keys) if (key, beginning) not in self._completions]
        if missing:
            texts = self._said(self.captioner, missing, beginning)
            self._completions.update({(key, beginning): text for key, text in zip(missing, texts, strict=True)})
        return [self._completions[key, beginning] for key in keys]

    def _said(self, captioner: Captioner, keys: Sequence[str], beginning: str) -> list[str]:
        pictures = [self.picture(key) for key in keys]
        if isinstance(captioner, CompletesCaptions):
            return captioner.complete(pictures, beginning=beginning)
        return captioner.caption(pictures, about=noun_of(self._classes[keys[0]]))

    def likelihoods(self, keys: Sequence[str], captions: Sequence[str]) -> FloatArray | None:
        """Return log P(caption | picture) [n, m], or None when the captioner cannot say."""
        scorer: object = self.captioner
        return scorer.log_likelihoods([self.picture(key) for key in keys], captions) if isinstance(scorer, ScoresCaptions) else None


def picture_key(picture: Image.Image) -> str:
    """Return the content hash of a picture's pixels."""
    content = f"{picture.mode} {picture.size}".encode() + picture.tobytes()
    return hashlib.sha256(content).hexdigest()[:32]
