"""Captions of a grammar, ranked by how well what they add fits a slice."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from weakspot.core.arrays import AnyArray, BoolArray, DoubleArray, FloatArray, unit_rows
from weakspot.core.assistants import Assistants, EmbedTexts
from weakspot.core.errors import ConfigError, ModelError
from weakspot.core.failures import ClassProblem, FailureCriterion, Side, class_problems
from weakspot.core.rules import LinearRule
from weakspot.core.samples import SampleSet
from weakspot.core.slices import FailureSlice, SliceName, matches
from weakspot.lexicon.captions import Caption, pairs_of, plain_caption, single_additions
from weakspot.lexicon.vocabulary import ClassWords, Vocabulary, built_in_vocabulary

DESCRIBER = "caption-grammar"
Words = ClassWords | Mapping[str, Sequence[str]]


@dataclass(frozen=True, kw_only=True)
class CaptionGrammarDescriber:
    """Names slices by captions; without a text side it returns them unnamed.

    Args:
        space: the vectors that are shared with text.
        adjectives: instead of the built-in ones.
        places: instead of the built-in ones.
        class_words: words for single classes, beside the others: adjectives, nouns, places.
        witness: what ranks captions. `data`: how what the caption adds goes with the slice's scores over the class's samples;
            `direction`: the paper's alignment with the slice's direction; `both`: the mean of the two, each in units of its
            spread over all captions tried.
        n_names: names kept for the slice.
        n_easy_names: names kept for the other end.
        n_combined: best single additions that are also tried in pairs.
        longer_gain: how much better, relatively, a name must be for every further content word it has.
        n_nearest: samples nearest to a caption whose accuracy is measured; at most a quarter of the class.
        chunk_size: captions embedded at a time.
    """

    space: str = "joint"
    adjectives: tuple[str, ...] | None = None
    places: tuple[str, ...] | None = None
    class_words: Mapping[str, Words] = field(default_factory=dict)
    witness: Literal["data", "direction", "both"] = "both"
    n_names: int = 5
    n_easy_names: int = 3
    n_combined: int = 6
    longer_gain: float = 0.35
    n_nearest: int = 20
    chunk_size: int = 1_024

    def describe(
        self, slices: Sequence[FailureSlice], samples: SampleSet, criterion: FailureCriterion, assistants: Assistants
    ) -> tuple[FailureSlice, ...]:
        """Return the same slices, in the same order, with names; unnamed where there is no text side or no sample."""
        embed_texts = assistants.embed_texts
        if embed_texts is None or not slices or self.space not in samples.spaces or not samples.space(self.space).has_text:
            return tuple(slices)
        problems = class_problems(samples.dataset, samples.rows, criterion)
        named = []
        for found in slices:
            problem = next((one for one in problems if matches(found, one)), None)
            named.append(found if problem is None else self._named(found, samples, problem, embed_texts))
        return tuple(named)

    def _named(self, found: FailureSlice, samples: SampleSet, problem: ClassProblem, embed_texts: EmbedTexts) -> FailureSlice:
        seen = _seen_class(found, samples, problem, self.space)
        if seen is None:
            return found
        plain = plain_caption(found.class_name, is_absent=found.side is Side.ABSENT)
        reference = self._embed([plain.phrase], embed_texts, seen)[0]
        singles = list(single_additions(plain, self._words(found.class_name), built_in_vocabulary()))
        judged = self._judge(singles, seen, reference, embed_texts)
        units = _Units.of(judged)
        ends = [sorted(judged, key=lambda one: -sign * self._score(one, units))[: self.n_combined] for sign in (1, -1)]
        pairs = [pair for end in ends for pair in pairs_of([one.caption for one in end])]
        judged += self._judge(pairs, seen, reference, embed_texts)
        hard = self._best(judged, units, sign=1)[: self.n_names]
        easy = self._best(judged, units, sign=-1)[: self.n_easy_names]
        return found.model_copy(
            update={
                "names": tuple(self._name(one, units, seen, sign=1) for one in hard),
                "easy_names": tuple(self._name(one, units, seen, sign=-1) for one in easy),
            }
        )

    def _words(self, class_name: str) -> ClassWords:
        given = _as_class_words(self.class_words.get(class_name, ClassWords()), class_name)
        built_in: Vocabulary = built_in_vocabulary()
        noun_words = set(plain_caption(class_name).phrase.split())
        adjectives = (self.adjectives if self.adjectives is not None else built_in.adjectives) + given.adjectives
        places = (self.places if self.places is not None else built_in.places) + given.places
        return ClassWords(
            adjectives=tuple(word for word in dict.fromkeys(adjectives) if word not in noun_words),
            nouns=tuple(dict.fromkeys(given.nouns)),
            places=tuple(dict.fromkeys(places)),
        )

    def _judge(
        self, captions: Sequence[Caption], seen: "_SeenClass", reference: AnyArray, embed_texts: EmbedTexts
    ) -> list["_Judged"]:
        judged: list[_Judged] = []
        for start in range(0, len(captions), self.chunk_size):
            part = captions[start : start + self.chunk_size]
            texts = self._embed([caption.phrase for caption in part], embed_texts, seen)
            additions = texts - reference
            data = seen.agreement(additions)
            direction = seen.alignment(additions)
            nearest = seen.accuracy_nearest(texts, self.n_nearest)
            judged += [
                _Judged(caption=caption, data=float(one), direction=float(two), accuracy_nearest=float(accuracy))
                for caption, one, two, accuracy in zip(part, data, direction, nearest, strict=True)
            ]
        return judged

    def _embed(self, phrases: Sequence[str], embed_texts: EmbedTexts, seen: "_SeenClass") -> FloatArray:
        texts = np.asarray(embed_texts(phrases), dtype=np.float32)
        if texts.shape != (len(phrases), seen.vectors.shape[1]) or not np.isfinite(texts).all():
            raise ModelError(
                "The text side does not fit the picture vectors.",
                given=f"vectors of shape {texts.shape}",
                fix=f"It must give {seen.vectors.shape[1]} finite numbers a phrase.",
            )
        return unit_rows(texts)

    def _score(self, judged: "_Judged", units: "_Units") -> float:
        if self.witness == "data":
            return judged.data
        if self.witness == "direction":
            return judged.direction
        return (judged.data / units.data + judged.direction / units.direction) / 2

    def _best(self, judged: Sequence["_Judged"], units: "_Units", *, sign: int) -> list["_Judged"]:
        """Return the captions of one end, best first, without those that only add to one already taken."""

        def discounted(one: _Judged) -> float:
            return sign * self._score(one, units) / (1 + self.longer_gain * (one.caption.n_content_words - 1))

        best: list[_Judged] = []
        for one in sorted(judged, key=lambda one: (-discounted(one), one.caption.phrase)):
            repeats = any(set(earlier.caption.added) <= set(one.caption.added) for earlier in best)
            if discounted(one) > 0 and not repeats:
                best.append(one)
        return best

    def _name(self, judged: "_Judged", units: "_Units", seen: "_SeenClass", *, sign: int) -> SliceName:
        # One sample more or less on the wrong side is no disagreement.
        slack = 1 / seen.n_near(self.n_nearest)
        is_as_expected = sign * (seen.accuracy - judged.accuracy_nearest) >= -slack
        return SliceName(
            phrase=judged.caption.phrase,
            contrast=judged.caption.contrast,
            score=round(sign * self._score(judged, units), 6),
            describer=DESCRIBER,
            accuracy_nearest=judged.accuracy_nearest,
            is_doubtful=judged.data * judged.direction < 0 or not is_as_expected,
        )


@dataclass(frozen=True, kw_only=True)
class _Judged:
    """A caption with what both witnesses say; positive where it fits the slice, negative where it fits the other end."""

    caption: Caption
    data: float
    direction: float
    accuracy_nearest: float


@dataclass(frozen=True, kw_only=True)
class _Units:
    """Root mean square of both witnesses over the captions tried, so that neither outshouts the other."""

    data: float
    direction: float

    @classmethod
    def of(cls, judged: Sequence[_Judged]) -> "_Units":
        data = float(np.sqrt(np.mean([one.data**2 for one in judged]))) if judged else 0.0
        direction = float(np.sqrt(np.mean([one.direction**2 for one in judged]))) if judged else 0.0
        return cls(data=data or 1.0, direction=direction or 1.0)


@dataclass(frozen=True, kw_only=True, eq=False)
class _SeenClass:
    """The samples of a class as captions are compared with them.

    Args:
        vectors: unit vectors [n, d].
        depth: how far inside the slice each lies [n], standardised.
        failed: which of them failed [n].
        direction: unit direction [d] of the slice in scaled space, None if its rule has none in this space.
        scale: what vectors are divided by in scaled space [d].
    """

    vectors: FloatArray
    depth: DoubleArray
    failed: BoolArray
    direction: DoubleArray | None
    scale: DoubleArray

    @property
    def accuracy(self) -> float:
        """Return the share of samples that did not fail."""
        return float((~self.failed).mean())

    def agreement(self, additions: AnyArray) -> DoubleArray:
        """Return the correlation [m] of slice depth with the samples' similarity to what captions add [m, d]."""
        similarities = self.vectors.astype(np.float64) @ np.asarray(additions, dtype=np.float64).T
        similarities -= similarities.mean(axis=0)
        deviations = similarities.std(axis=0)
        return np.asarray(self.depth @ similarities / len(self.depth) / np.where(deviations > 0, deviations, np.inf))

    def alignment(self, additions: AnyArray) -> DoubleArray:
        """Return the cosine [m] of the slice's direction with what captions add [m, d], or the agreement if it has none.

        Additions are differences, so only the scale of the rule applies to them; subtracting its centre would add the same
        constant to all.
        """
        if self.direction is None:
            return self.agreement(additions)
        return np.asarray(unit_rows(additions / self.scale) @ self.direction, dtype=np.float64)

    def n_near(self, n_nearest: int) -> int:
        """Return how many samples count as nearest: at most a quarter of the class."""
        return max(1, min(n_nearest, len(self.vectors) // 4))

    def accuracy_nearest(self, texts: AnyArray, n_nearest: int) -> DoubleArray:
        """Return for every caption [m] the accuracy of the samples nearest to it."""
        nearest = np.argsort(-(texts @ self.vectors.T), axis=1, kind="stable")[:, : self.n_near(n_nearest)]
        return np.asarray((~self.failed[nearest]).mean(axis=1), dtype=np.float64)


def _seen_class(found: FailureSlice, samples: SampleSet, problem: ClassProblem, space: str) -> _SeenClass | None:
    """Return the class's samples that have a vector and a score, None if they are all alike or none is left."""
    vectors = samples.vectors(space, problem.rows)
    depth = found.rule.scores(samples, problem.rows)
    known = np.isfinite(vectors).all(axis=1) & np.isfinite(depth)
    depth = depth[known]
    if not known.any() or depth.std() == 0:
        return None
    rule = found.rule
    has_direction = isinstance(rule, LinearRule) and rule.space == space
    direction = np.asarray(rule.direction, dtype=np.float64) if isinstance(rule, LinearRule) and has_direction else None
    scale = np.ones(vectors.shape[1])
    if isinstance(rule, LinearRule) and has_direction and rule.scale is not None:
        scale = np.asarray(rule.scale, dtype=np.float64)
    return _SeenClass(
        vectors=unit_rows(vectors[known]),
        depth=(depth - depth.mean()) / depth.std(),
        failed=problem.failed[known],
        direction=None if direction is None else direction / np.linalg.norm(direction),
        scale=scale,
    )


def _as_class_words(given: Words, class_name: str) -> ClassWords:
    if isinstance(given, ClassWords):
        return given
    unknown = sorted(set(given) - {"adjectives", "nouns", "places"})
    if unknown:
        raise ConfigError(
            f"Unknown kinds of words: {unknown}.", where=f"class_words of {class_name!r}", fix="Use adjectives, nouns or places."
        )
    return ClassWords(**{kind: tuple(words) for kind, words in given.items()})
