"""Words of captions that failures say more often than other samples: tested as they are, and as a plain table of frequencies."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

import numpy as np

from weakspot.core.arrays import BoolArray
from weakspot.core.bounds import Count, PositiveFraction
from weakspot.core.discoverers import ClassDiscoverer, ClassSamples
from weakspot.core.failures import ClassProblem, Side
from weakspot.core.roles import Discovery
from weakspot.core.samples import Need, SampleSet, obstacle
from weakspot.core.slices import DataUse, FailureSlice, SliceName
from weakspot.core.statistics import association, overlap
from weakspot.discover.family_tests import BlindCandidate, family_test
from weakspot.words.caption_rule import (
    CaptionIndex,
    CaptionRule,
    WordFrequency,
    caption_index,
    count_keywords,
)
from weakspot.words.captions import noun_of
from weakspot.words.wordnet import everyday_lemma

MAX_CELLS = 30_000_000
MIN_KEYWORDS = 20
NO_CAPTIONS = "There are no captions: no metadata column {column!r} holds text."


def read_column(samples: SampleSet, column: str) -> CaptionIndex | None:
    """Return the captions of a metadata column; None if there is no such column, or it holds no text."""
    if column not in samples.dataset.metadata_names:
        return None
    return caption_index(samples.dataset.metadata(column))


@dataclass(frozen=True, kw_only=True)
class CaptionWords(ClassDiscoverer):
    """What both methods read: the words of captions of a class; the fields are explained there."""

    needs = (Need.CAPTIONS,)
    caption_column: str = "caption"
    max_words: Count = 2
    min_captions: Count = 10
    max_share: PositiveFraction = 0.9

    def captioned(
        self, samples: SampleSet, problem: ClassProblem, *, most: int | None = None
    ) -> tuple[ClassProblem, dict[str, BoolArray]] | None:
        """Return the samples of a class that have a caption, by sample id, and which of them say each word, most frequent first.

        Stop words, those of its own name, and what nearly all captions say are left out. Of keywords that the same captions say, the
        longest stands for all. Very large classes get fewer, so that tests fit into memory. None where no column holds captions.
        """
        index = read_column(samples, self.caption_column)
        if index is None:
            return None
        has_caption = index.has_caption(problem.rows)
        order = np.argsort(np.array(samples.dataset.sample_ids(problem.rows)), kind="stable")
        own = problem.only(order[has_caption[order]])
        texts = index.texts_of(own.rows)
        counts = count_keywords(texts, max_words=self.max_words)
        largest = min(self.max_share * len(texts), len(texts) - self.min_captions)
        of_class = _class_lemmas(problem)
        usable = sorted(
            (
                keyword
                for keyword, count in counts.items()
                if self.min_captions <= count <= largest and not of_class & set(keyword.split(" "))
            ),
            key=lambda keyword: (-counts[keyword], -keyword.count(" "), keyword),
        )
        affordable = max(MIN_KEYWORDS, MAX_CELLS // max(len(texts), 1))
        kept: dict[bytes, tuple[str, BoolArray]] = {}
        for keyword in usable:
            inside = index.say(keyword, own.rows)
            kept.setdefault(np.packbits(inside).tobytes(), (keyword, inside))
            if len(kept) >= (affordable if most is None else min(most, affordable)):
                break
        return own, dict(kept.values())

    def slice_of_words(
        self,
        of: ClassSamples,
        words: str,
        *,
        n_found: int,
        strength: float | None = None,
        strength_p: float | None = None,
    ) -> FailureSlice:
        """Return a slice, whose name is what all captions of its members say."""
        return self.slice_of(
            of,
            CaptionRule(column=self.caption_column, words=words),
            n_found=n_found,
            strength=strength,
            strength_p=strength_p,
            names=(SliceName(phrase=words, contrast=words, score=1.0, describer=self.method),),
        )


def _class_lemmas(problem: ClassProblem) -> frozenset[str]:
    """Return the lemmas of a class name; none for samples that lack it, whose captions need not name it."""
    if problem.side is Side.ABSENT:
        return frozenset()
    return frozenset(everyday_lemma(word) for word in noun_of(problem.class_name).lower().split())


@dataclass(frozen=True, kw_only=True)
class WordsDiscoverer(CaptionWords):
    """Finds words, and pairs of neighbouring words, whose captions fail more often than the rest; needs neither images nor embeddings.

    After Kim, Mo, Kim, Lee, Lee and Shin, *Discovering and Mitigating Visual Biases through Keyword Explanation* (2024), with a test in
    the place of the encoder.

    Args:
        caption_column: metadata column that holds captions.
        max_words: longest keyword.
        min_captions: fewest captions of the class that contain a keyword, and fewest that do not.
        max_share: keywords in a larger share of the class's captions are left out.
        max_candidates: at most so many keywords are tried per class, the most frequent ones; fewer beyond 100,000 captions.
        max_slices: slices of a class, at most.
        max_overlap: of two keywords whose members overlap more (intersection over union) only the better one is kept.
        max_p: keywords with a larger p-value of their own are not reported.
        min_failures: classes with fewer failures are passed over.
        min_right: classes with fewer samples that did not fail are passed over.

    >>> from weakspot.testing.examples import CRITERION, captioned_samples
    >>> found = WordsDiscoverer().discover(captioned_samples(), CRITERION, seed=0)
    >>> found.slices[0].title, found.slices[0].n_found
    ('disc: green', 16)
    """

    method = "words"
    auto_place = 3
    is_always_blind = True
    max_candidates: Count = 300
    max_slices: Count = 5
    max_overlap: PositiveFraction = 0.7
    max_p: PositiveFraction = 0.05
    min_failures: Count = 2
    min_right: Count = 2

    def blind_candidates(
        self, samples: SampleSet, problem: ClassProblem, *, seed: int
    ) -> tuple[BlindCandidate, ...]:
        """Return every keyword of the class; all count alike, which was as good as any weight by length or frequency."""
        captioned = self.captioned(samples, problem, most=self.max_candidates)
        of = self.class_samples(samples, problem, DataUse.nothing(), seed=seed)
        keywords = {} if captioned is None else captioned[1]
        return tuple(
            (self.slice_of_words(of, words, n_found=int(inside.sum())), 1.0)
            for words, inside in keywords.items()
        )

    def gathered(self, parts: Iterable[Discovery]) -> Discovery:
        """Return what was found in all classes, least likely by chance first."""
        found = super().gathered(parts)
        ordered = sorted(
            found.slices,
            key=lambda each: (each.strength_p or 0.0, -(each.strength or 0.0), each.slice_id),
        )
        return replace(found, slices=tuple(ordered))

    def looked_at(self, of: ClassSamples) -> Discovery:
        """Return the keywords that failures of a class say more often; those of a class with an obstacle are counted, too."""
        captioned = self.captioned(of.samples, of.problem, most=self.max_candidates)
        if captioned is None:
            return of.noted(NO_CAPTIONS.format(column=self.caption_column))
        problem, keywords = captioned
        n_without = len(of.problem.rows) - len(problem.rows)
        missing = f" {n_without} samples have no caption." if n_without else ""
        note = obstacle(problem, min_failures=self.min_failures, min_right=self.min_right)
        slices = [] if note else self._failing(of, problem, keywords)
        if not slices:
            nothing = f"None of {len(keywords)} words of captions stands out."
            return of.noted(f"{note}{missing}" if note else nothing, n_considered=len(keywords))
        return Discovery(slices=tuple(slices), n_considered=len(keywords))

    def _failing(
        self, of: ClassSamples, problem: ClassProblem, keywords: Mapping[str, BoolArray]
    ) -> list[FailureSlice]:
        if not keywords:
            return []
        words, insides = list(keywords), list(keywords.values())
        own, among_all = family_test(problem.failed, problem.groups, insides, [1.0] * len(insides))
        kept: list[int] = []
        for place in np.argsort(own, kind="stable").tolist():
            if own[place] > self.max_p or len(kept) == self.max_slices:
                break
            if all(overlap(insides[place], insides[other]) <= self.max_overlap for other in kept):
                kept.append(place)
        return [
            self.slice_of_words(
                of,
                words[place],
                n_found=int(insides[place].sum()),
                strength=association(problem.failed, insides[place]),
                strength_p=float(among_all[place]),
            )
            for place in kept
        ]


@dataclass(frozen=True, kw_only=True)
class WordFrequenciesDiscoverer(CaptionWords):
    """Baseline: the words that failures say more often than other samples by share alone, without any test.

    Args:
        caption_column: metadata column that holds captions.
        max_words: longest keyword.
        min_captions: fewest captions of the class that contain a keyword, and fewest that do not.
        max_share: keywords in a larger share of the class's captions are left out.
        max_slices: slices of a class, at most.
        min_failures: classes with fewer failures are passed over.

    >>> from weakspot.testing.examples import CRITERION, captioned_samples
    >>> found = WordFrequenciesDiscoverer().discover(captioned_samples(), CRITERION, seed=0)
    >>> found.slices[0].title, found.slices[0].n_found
    ('disc: green', 16)
    """

    method = "word-frequencies"
    is_baseline = True
    min_captions: Count = 5
    max_share: PositiveFraction = 1.0
    max_slices: Count = 5
    min_failures: Count = 2

    def looked_at(self, of: ClassSamples) -> Discovery:
        if read_column(of.samples, self.caption_column) is None:
            return of.noted(NO_CAPTIONS.format(column=self.caption_column))
        return super().looked_at(of)

    def slices_of(self, of: ClassSamples) -> Discovery:
        slices = tuple(
            self.slice_of_words(
                of, each.words, n_found=each.failed_with + each.right_with, strength=each.difference
            )
            for each in self.frequencies(of.samples, of.problem)
        )
        nothing = of.noted("No word of captions is more frequent among failures.")
        return Discovery(slices=slices, n_considered=len(slices)) if slices else nothing

    def frequencies(self, samples: SampleSet, problem: ClassProblem) -> tuple[WordFrequency, ...]:
        """Return the words that failures of a class say more often than its other samples, largest difference of shares first."""
        captioned = self.captioned(samples, problem)
        if captioned is None:
            return ()
        own, keywords = captioned
        counted = [
            WordFrequency(
                class_name=problem.title,
                words=words,
                failed_with=int((inside & own.failed).sum()),
                n_failed=own.n_failed,
                right_with=int((inside & ~own.failed).sum()),
                n_right=own.n_right,
            )
            for words, inside in keywords.items()
        ]
        more = [each for each in counted if each.difference > 0]
        return tuple(
            sorted(more, key=lambda each: (-each.difference, each.words))[: self.max_slices]
        )
