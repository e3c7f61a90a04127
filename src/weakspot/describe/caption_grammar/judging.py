"""Captions ranked by how well what they add fits a slice: a stream of any length, of which only the best are kept."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import chain, islice
from typing import Literal

import numpy as np

from weakspot.core.arrays import DoubleArray, FloatArray, unit_rows
from weakspot.core.assistants import EmbedTexts
from weakspot.core.errors import ModelError
from weakspot.core.word_directions import word_directions
from weakspot.describe.caption_grammar.class_view import SliceView
from weakspot.lexicon.captions import Caption, reference_phrase

Ranking = Literal["data", "direction", "both"]
N_FOR_UNITS = 4_096
N_REMEMBERED = 20_000
DIGITS = 4


class TextSide:
    """The embeddings of phrases, checked; those of the first phrases are kept, as every slice of a class asks for them again."""

    def __init__(self, embed_texts: EmbedTexts, dimension: int) -> None:
        self._embed_texts = embed_texts
        self._dimension = dimension
        self._remembered: dict[str, FloatArray] = {}

    def embeddings(self, phrases: Sequence[str]) -> FloatArray:
        """Return unit vectors [m, d]."""
        new = [phrase for phrase in dict.fromkeys(phrases) if phrase not in self._remembered]
        fresh = dict(zip(new, self._embed(new), strict=True)) if new else {}
        found = np.stack(
            [fresh[phrase] if phrase in fresh else self._remembered[phrase] for phrase in phrases]
        )
        # Copies, because a view of one row would keep the whole chunk alive.
        room = max(0, N_REMEMBERED - len(self._remembered))
        self._remembered.update((phrase, fresh[phrase].copy()) for phrase in new[:room])
        return np.asarray(found, dtype=np.float32)

    def _embed(self, phrases: Sequence[str]) -> FloatArray:
        texts = np.asarray(self._embed_texts(phrases), dtype=np.float32)
        if texts.shape != (len(phrases), self._dimension) or not np.isfinite(texts).all():
            raise ModelError(
                "The text side does not fit the image embeddings.",
                given=f"embeddings of shape {texts.shape}",
                fix=f"It must give {self._dimension} finite numbers a phrase.",
            )
        return unit_rows(texts)


@dataclass(frozen=True, kw_only=True)
class Judged:
    """A caption with what was found; positive where it fits the slice, negative where it fits the other end.

    Args:
        caption: the caption.
        data: agreement with the class's samples.
        direction: alignment with the slice's direction.
        score: what ranks it.
        position: its place among all captions tried; the earlier of two equals wins.
    """

    caption: Caption
    data: float
    direction: float
    score: float
    position: int


@dataclass
class Best:
    """The best captions of one end so far.

    Args:
        sign: 1 for the slice, -1 for the other end.
        most: how many are kept.
        longer_gain: how much better, relatively, a caption must be for every further content word; captions that only add to a
            better one are then dropped. With None the score alone counts and nothing is dropped.
        allowed: words that may be added; any if None.
    """

    sign: int
    most: int
    longer_gain: float | None = None
    allowed: frozenset[str] | None = None
    kept: list[Judged] = field(default_factory=list)

    def add(
        self,
        captions: Sequence[Caption],
        data: DoubleArray,
        direction: DoubleArray,
        scores: DoubleArray,
        first: int,
    ) -> None:
        """Take what is good enough of a chunk whose first caption has the given position."""
        # Discounts only lower a score, so what is below the worst kept one before it cannot enter.
        floor = self.rank(self.kept[-1]) if self.kept and len(self.kept) >= self.most else 0.0
        candidates = [
            place
            for place in np.flatnonzero(self.sign * scores > floor).tolist()
            if self._may_say(captions[place])
        ]
        found = [
            Judged(
                caption=captions[place],
                data=float(data[place]),
                direction=float(direction[place]),
                score=float(scores[place]),
                position=first + place,
            )
            for place in candidates
        ]
        if found:
            self.kept = self._sift(
                sorted(self.kept + found, key=lambda one: (-self.rank(one), one.position))
            )

    def _may_say(self, caption: Caption) -> bool:
        return self.allowed is None or all(words in self.allowed for _, words in caption.added)

    def rank(self, judged: Judged) -> float:
        """Return what captions are ordered by: the score, less for every further word."""
        discount = 1 + (self.longer_gain or 0.0) * (judged.caption.n_content_words - 1)
        return round(self.sign * judged.score / discount, DIGITS)

    def _sift(self, ranked: Sequence[Judged]) -> list[Judged]:
        if self.longer_gain is None:
            return list(ranked[: self.most])
        kept: list[Judged] = []
        for one in ranked:
            if len(kept) >= self.most:
                break
            added = set(one.caption.added)
            if self.rank(one) > 0 and not any(
                set(better.caption.added) <= added for better in kept
            ):
                kept.append(one)
        return kept


class Judge:
    """Judges captions for one slice, chunk by chunk.

    Args:
        slice_view: the slice.
        texts: the text side.
        reference: the plain caption.
        ranking: what ranks captions.
        chunk_size: captions embedded at a time.
    """

    def __init__(
        self,
        slice_view: SliceView,
        texts: TextSide,
        reference: Caption,
        ranking: Ranking,
        chunk_size: int,
    ) -> None:
        self._slice_view = slice_view
        self._texts = texts
        self._reference = reference
        self._ranking = ranking
        self._chunk_size = chunk_size
        self._units: tuple[float, float] | None = None
        self._n_judged = 0

    def run(self, captions: Iterable[Caption], ends: Sequence[Best]) -> None:
        """Judge captions and let every end keep its best; the first call sets the units for all."""
        stream = iter(captions)
        if self._units is None:
            opening = list(islice(stream, N_FOR_UNITS))
            self._units = self._units_of(opening)
            stream = chain(opening, stream)
        while chunk := list(islice(stream, self._chunk_size)):
            data, direction = self._measure(chunk)
            scores = self._scores(data, direction, self._units)
            for end in ends:
                end.add(chunk, data, direction, scores, self._n_judged)
            self._n_judged += len(chunk)

    def _units_of(self, captions: Sequence[Caption]) -> tuple[float, float]:
        """Return the root mean squares of both measures, so that neither outshouts the other."""
        squares = np.zeros(2)
        for start in range(0, len(captions), self._chunk_size):
            squares += [
                np.square(values).sum()
                for values in self._measure(captions[start : start + self._chunk_size])
            ]
        data, direction = np.sqrt(squares / max(1, len(captions)))
        return float(data) or 1.0, float(direction) or 1.0

    def _measure(self, captions: Sequence[Caption]) -> tuple[DoubleArray, DoubleArray]:
        references = [reference_phrase(self._reference, caption) for caption in captions]
        different = list(dict.fromkeys(references))
        found = self._texts.embeddings(different)[
            [different.index(phrase) for phrase in references]
        ]
        additions = word_directions(
            self._texts.embeddings([caption.phrase for caption in captions]),
            found,
            self._texts.embeddings([caption.contrast.replace(",", "") for caption in captions]),
            self._slice_view.view.centre,
        )
        return self._slice_view.agreement(additions), self._slice_view.alignment(additions)

    def _scores(
        self, data: DoubleArray, direction: DoubleArray, units: tuple[float, float]
    ) -> DoubleArray:
        if self._ranking == "data":
            return data
        if self._ranking == "direction":
            return direction
        return np.asarray((data / units[0] + direction / units[1]) / 2, dtype=np.float64)
