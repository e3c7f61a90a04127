"""Which of a project's images show a place that words name."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from weakspot.core.arrays import FloatArray, IntArray, unit_rows
from weakspot.core.assistants import EmbedTexts
from weakspot.lexicon.captions import content_words
from weakspot.lexicon.vocabulary import built_in_attributes

LEAST_SCORE = 1.0
FEWEST_IMAGES = 3
MOST_SHOWN = 60
PLACE_ATTRIBUTES = ("background", "place")
_PREPOSITIONS = frozenset(
    {"on", "in", "at", "by", "under", "behind", "near", "among", "with", "beside", "against"}
)


@dataclass(frozen=True, kw_only=True, eq=False)
class BackgroundWords:
    """Images against words for places: an image shows the place that suits it better than all other places, in two ways.

    By similarity itself, because a set of images from shops shows no meadow, however much greener some are than others; and by
    similarity compared with that of all images, because some words are near to every image. Both must name the same place. It
    is one of those that are known by name, or any other that is asked for, which then competes with them.

    Args:
        embeddings: unit vectors of the images [n, d].
        embed_texts: phrases to embeddings of the same space; None if there is no text side, and then no words are known.
    """

    embeddings: FloatArray
    embed_texts: EmbedTexts | None

    @classmethod
    def of(cls, embeddings: FloatArray, embed_texts: EmbedTexts) -> "BackgroundWords":
        """Return the words for some images; those without an embedding show nothing."""
        return cls(embeddings=unit_rows(np.nan_to_num(embeddings)), embed_texts=embed_texts)

    @classmethod
    def none(cls) -> "BackgroundWords":
        return cls(embeddings=np.zeros((0, 1), dtype=np.float32), embed_texts=None)

    @cached_property
    def known(self) -> tuple[str, ...]:
        """Return the places by name that enough images show."""
        if self.embed_texts is None:
            return ()
        names, known = self._known
        best = known.best()
        counts = np.bincount(best[best >= 0], minlength=len(names))
        return tuple(
            name
            for name, count in zip(names, counts.tolist(), strict=True)
            if count >= FEWEST_IMAGES
        )

    def places(self, words: str) -> IntArray:
        """Return the images that show a place, best first, at most so many that the choice stays a good one."""
        if self.embed_texts is None or not words.strip():
            return np.zeros(0, dtype=np.int64)
        names, known = self._known
        named = [place for place, name in enumerate(names) if _content(name) == _content(words)]
        own = known.only(named[:1]) if named else self._likeness([_phrases(words)])
        together = own.beside(known, [not _is_same(words, name) for name in names])
        found = np.flatnonzero(together.best() == 0)
        if len(found) < FEWEST_IMAGES:
            return np.zeros(0, dtype=np.int64)
        return found[np.argsort(-own.compared[found, 0], kind="stable")][:MOST_SHOWN]

    @cached_property
    def _known(self) -> tuple[tuple[str, ...], "Likeness"]:
        values = [
            value
            for one in built_in_attributes()
            if one.name in PLACE_ATTRIBUTES
            for value in one.values
        ]
        phrases = [[f"a photo {words}" for words in one.wordings] for one in values]
        return tuple(value.value for value in values), self._likeness(phrases)

    def _likeness(self, phrases: Sequence[Sequence[str]]) -> "Likeness":
        if self.embed_texts is None:
            return Likeness(plain=np.zeros((len(self.embeddings), len(phrases)), dtype=np.float32))
        flat = unit_rows(self.embed_texts([phrase for each in phrases for phrase in each]))
        ends = np.cumsum([len(each) for each in phrases])
        prototypes = unit_rows(np.stack([part.mean(axis=0) for part in np.split(flat, ends[:-1])]))
        return Likeness(plain=self.embeddings @ prototypes.T)


@dataclass(frozen=True, kw_only=True, eq=False)
class Likeness:
    """How near images are to words [n, k]."""

    plain: FloatArray

    @cached_property
    def compared(self) -> FloatArray:
        """Return how much nearer than images usually are to the same words, in standard deviations [n, k]."""
        spread = np.maximum(self.plain.std(axis=0), 1e-6)
        return np.asarray((self.plain - np.median(self.plain, axis=0)) / spread, dtype=np.float32)

    def only(self, columns: Sequence[int]) -> "Likeness":
        return Likeness(plain=self.plain[:, list(columns)])

    def beside(self, other: "Likeness", chosen: Sequence[bool]) -> "Likeness":
        return Likeness(plain=np.hstack([self.plain, other.plain[:, list(chosen)]]))

    def best(self) -> IntArray:
        """Return for every image [n] the words that suit it best in both ways, -1 if there are none."""
        first, second = self.plain.argmax(axis=1), self.compared.argmax(axis=1)
        is_clear = (first == second) & (self.compared.max(axis=1) >= LEAST_SCORE)
        return np.where(is_clear, first, -1)


def _phrases(words: str) -> list[str]:
    """Return captions of a place that comes with or without its preposition."""
    return (
        [f"a photo {words}"]
        if words.split(maxsplit=1)[0].lower() in _PREPOSITIONS
        else [f"a photo of {words}", f"a photo with {words}"]
    )


def _content(words: str) -> frozenset[str]:
    return frozenset(content_words(words))


def _is_same(first: str, second: str) -> bool:
    """Return whether two names of places share what they are about."""
    return bool(_content(first) & _content(second))
