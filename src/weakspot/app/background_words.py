"""Which of a project's pictures show a place that words name."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from weakspot.core.arrays import FloatArray, IntArray, unit_rows
from weakspot.core.assistants import EmbedTexts
from weakspot.lexicon.attribute_vocabulary import built_in_attributes
from weakspot.lexicon.captions import content_words

LEAST_SCORE = 1.0
FEWEST_PICTURES = 3
MOST_SHOWN = 24
PLACE_ATTRIBUTES = ("background", "place")


@dataclass(frozen=True, kw_only=True, eq=False)
class BackgroundWords:
    """Pictures against words for places: a picture shows the place that suits it better than all other places.

    Similarities are set against those of all pictures with the same words, because some words are near to every picture. A place
    is one of those that are known by name, or any other that is asked for, which then competes with them.

    Args:
        vectors: unit vectors of the pictures [n, d].
        embed_texts: phrases to vectors of the same space; None if there is no text side, and then no words are known.
    """

    vectors: FloatArray
    embed_texts: EmbedTexts | None

    @classmethod
    def of(cls, vectors: FloatArray, embed_texts: EmbedTexts) -> "BackgroundWords":
        """Return the words for some pictures; those without a vector show nothing."""
        return cls(vectors=unit_rows(np.nan_to_num(vectors)), embed_texts=embed_texts)

    @classmethod
    def none(cls) -> "BackgroundWords":
        """Return no words at all."""
        return cls(vectors=np.zeros((0, 1), dtype=np.float32), embed_texts=None)

    @cached_property
    def known(self) -> tuple[str, ...]:
        """Return the places by name that enough pictures show."""
        if self.embed_texts is None:
            return ()
        names, scores = self._known
        best, score = scores.argmax(axis=1), scores.max(axis=1)
        counts = np.bincount(best[score >= LEAST_SCORE], minlength=len(names))
        return tuple(name for name, count in zip(names, counts.tolist(), strict=True) if count >= FEWEST_PICTURES)

    def places(self, words: str) -> IntArray:
        """Return the pictures that show a place, best first, at most so many that the choice stays a good one."""
        if self.embed_texts is None or not words.strip():
            return np.zeros(0, dtype=np.int64)
        phrases = _phrases(words)
        own = self._scores([phrases])[:, 0]
        names, scores = self._known
        rivals = scores[:, [not _is_same(words, name) for name in names]]
        wins = (own >= rivals.max(axis=1, initial=-np.inf)) & (own >= LEAST_SCORE)
        found = np.flatnonzero(wins)
        if len(found) < FEWEST_PICTURES:
            return np.zeros(0, dtype=np.int64)
        return found[np.argsort(-own[found], kind="stable")][:MOST_SHOWN]

    @cached_property
    def _known(self) -> tuple[tuple[str, ...], FloatArray]:
        values = [value for one in built_in_attributes() if one.name in PLACE_ATTRIBUTES for value in one.values]
        return tuple(value.value for value in values), self._scores(
            [[f"a photo {words}" for words in one.wordings] for one in values]
        )

    def _scores(self, phrases: Sequence[Sequence[str]]) -> FloatArray:
        """Return how much nearer each picture is to the words than pictures are on average, in standard deviations [n, k]."""
        if self.embed_texts is None:
            return np.zeros((len(self.vectors), len(phrases)), dtype=np.float32)
        flat = unit_rows(self.embed_texts([phrase for each in phrases for phrase in each]))
        ends = np.cumsum([len(each) for each in phrases])
        prototypes = unit_rows(np.stack([part.mean(axis=0) for part in np.split(flat, ends[:-1])]))
        similarities = self.vectors @ prototypes.T
        spread = np.maximum(similarities.std(axis=0), 1e-6)
        return np.asarray((similarities - np.median(similarities, axis=0)) / spread, dtype=np.float32)


def _phrases(words: str) -> list[str]:
    """Return captions of a place that comes with or without its preposition."""
    return [f"a photo {words}", f"a photo of {words}"]


def _is_same(first: str, second: str) -> bool:
    """Return whether two names of places share what they are about."""
    return bool(set(content_words(first, with_carriers=True)) & set(content_words(second, with_carriers=True)))
