"""Words of captions that failures say more often than other samples: tested as they are, and as a plain table of frequencies."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass

import numpy as np

from weakspot.core.arrays import BoolArray
from weakspot.core.assistants import NO_ASSISTANTS, Assistants
from weakspot.core.bounds import Count, PositiveFraction, check_bounds
from weakspot.core.failures import ClassProblem, FailureCriterion, Side, class_problems
from weakspot.core.roles import Discovery
from weakspot.core.run import ClassNote
from weakspot.core.samples import Need, SampleSet, obstacle
from weakspot.core.slices import DataUse, FailureSlice, SliceName
from weakspot.core.statistics import association, overlap
from weakspot.discover.family_tests import BlindCandidate, family_test
from weakspot.words.caption_rule import CaptionIndex, CaptionRule, WordFrequency, caption_index
from weakspot.words.caption_words import count_keywords
from weakspot.words.captions import noun_of
from weakspot.words.wordnet import everyday_lemma

MAX_CELLS = 30_000_000
MIN_KEYWORDS = 20
NO_CAPTIONS = "There are no captions: no metadata column {column!r} holds text."


@dataclass(frozen=True, kw_only=True, eq=False)
class Keyword:
    """A word, or neighbouring words.

    Args:
        words: lemmas.
        inside: which samples' captions say it [n].
    """

    words: str
    inside: BoolArray

    @property
    def n_words(self) -> int:
        return self.words.count(" ") + 1


@dataclass(frozen=True, kw_only=True, eq=False)
class CaptionedClass:
    """The samples of a class that have a caption.

    Args:
        problem: these samples, by sample id.
        keywords: what enough of them say and enough do not, most frequent first.
    """

    problem: ClassProblem
    keywords: tuple[Keyword, ...]


def read_column(samples: SampleSet, column: str) -> CaptionIndex | None:
    """Return the captions of a metadata column; None if there is no such column, or it holds no text."""
    if column not in samples.dataset.metadata_names:
        return None
    return caption_index(samples.dataset.metadata(column))


def captioned_class(
    samples: SampleSet,
    problem: ClassProblem,
    index: CaptionIndex,
    *,
    max_words: int,
    min_captions: int,
    max_share: float,
    most: int,
) -> CaptionedClass:
    """Return the words of a class: neither stop words, nor those of its own name, nor what nearly all captions say.

    Of keywords that the same captions say, the longest stands for all. Very large classes get fewer, so that tests fit into memory.
    """
    has_caption = index.has_caption(problem.rows)
    order = np.argsort(np.array(samples.dataset.sample_ids(problem.rows)), kind="stable")
    own = problem.only(order[has_caption[order]])
    texts = index.texts_of(own.rows)
    counts = count_keywords(texts, max_words=max_words)
    largest = min(max_share * len(texts), len(texts) - min_captions)
    of_class = class_words(problem)
    usable = sorted(
        (
            words
            for words, count in counts.items()
            if min_captions <= count <= largest and not of_class & set(words.split(" "))
        ),
        key=lambda words: (-counts[words], -words.count(" "), words),
    )
    affordable = max(MIN_KEYWORDS, MAX_CELLS // max(len(texts), 1))
    kept: dict[bytes, Keyword] = {}
    for words in usable:
        inside = index.say(words, own.rows)
        kept.setdefault(np.packbits(inside).tobytes(), Keyword(words=words, inside=inside))
        if len(kept) >= min(most, affordable):
            break
    return CaptionedClass(problem=own, keywords=tuple(kept.values()))


def class_words(problem: ClassProblem) -> frozenset[str]:
    """Return the lemmas of a class name; none for samples that lack it, whose captions need not name it."""
    if problem.side is Side.ABSENT:
        return frozenset()
    return frozenset(everyday_lemma(word) for word in noun_of(problem.class_name).lower().split())


def name_slice(found: FailureSlice) -> FailureSlice:
    """Return the slice of a caption rule with the words that all of its members' captions say as its name."""
    rule = found.rule
    words = rule.words if isinstance(rule, CaptionRule) else ""
    name = SliceName(phrase=words, contrast=words, score=1.0, describer=found.method)
    return found.model_copy(update={"names": (name,)})


METHOD = "words"


@dataclass(frozen=True, kw_only=True)
class WordsDiscoverer:
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

    caption_column: str = "caption"
    max_words: Count = 2
    min_captions: Count = 10
    max_share: PositiveFraction = 0.9
    max_candidates: Count = 300
    max_slices: Count = 5
    max_overlap: PositiveFraction = 0.7
    max_p: PositiveFraction = 0.05
    min_failures: Count = 2
    min_right: Count = 2

    def __post_init__(self) -> None:
        check_bounds(self)

    @property
    def is_baseline(self) -> bool:
        return False

    @property
    def needs(self) -> tuple[Need, ...]:
        return (Need.CAPTIONS,)

    @property
    def is_always_blind(self) -> bool:
        return True

    def blind_candidates(
        self, samples: SampleSet, problem: ClassProblem, *, seed: int
    ) -> tuple[BlindCandidate, ...]:
        """Return every keyword of the class; all count alike, which was as good as any weight by length or frequency."""
        del seed
        words = self._words(samples, problem)
        if words is None:
            return ()
        nothing = DataUse.nothing()
        return tuple(
            BlindCandidate(found=self._slice(problem, keyword, nothing))
            for keyword in words.keywords
        )

    def discover(
        self,
        samples: SampleSet,
        criterion: FailureCriterion,
        *,
        seed: int,
        assistants: Assistants = NO_ASSISTANTS,
    ) -> Discovery:
        """Return the keywords that failures of a class say more often, and a note for every class without any."""
        del seed, assistants
        found_on = DataUse.of(samples)
        slices: list[FailureSlice] = []
        notes: list[ClassNote] = []
        n_considered = 0
        for problem in class_problems(samples.dataset, samples.rows, criterion):
            words = self._words(samples, problem)
            n_considered += 0 if words is None else len(words.keywords)
            note = self._obstacle(problem, words)
            found = [] if words is None or note else self._failing(words, found_on)
            slices += found
            if words is not None and not found:
                note = note or f"None of {len(words.keywords)} words of captions stands out."
            if note:
                notes.append(ClassNote(class_name=problem.title, note=note))
        slices.sort(key=lambda one: (one.strength_p or 0.0, -(one.strength or 0.0), one.slice_id))
        return Discovery(slices=tuple(slices), notes=tuple(notes), n_considered=n_considered)

    def _words(self, samples: SampleSet, problem: ClassProblem) -> CaptionedClass | None:
        index = read_column(samples, self.caption_column)
        if index is None:
            return None
        return captioned_class(
            samples,
            problem,
            index,
            max_words=self.max_words,
            min_captions=self.min_captions,
            max_share=self.max_share,
            most=self.max_candidates,
        )

    def _obstacle(self, problem: ClassProblem, words: CaptionedClass | None) -> str:
        if words is None:
            return NO_CAPTIONS.format(column=self.caption_column)
        n_without = len(problem.rows) - len(words.problem.rows)
        missing = f" {n_without} samples have no caption." if n_without else ""
        note = obstacle(words.problem, min_failures=self.min_failures, min_right=self.min_right)
        return f"{note}{missing}" if note else ""

    def _failing(self, words: CaptionedClass, found_on: DataUse) -> list[FailureSlice]:
        problem, keywords = words.problem, words.keywords
        if not keywords:
            return []
        insides = [keyword.inside for keyword in keywords]
        tested = family_test(problem.failed, problem.groups, insides, [1.0] * len(insides))
        kept: list[int] = []
        for place in np.lexsort((np.arange(len(keywords)), tested.own)).tolist():
            if tested.own[place] > self.max_p or len(kept) == self.max_slices:
                break
            if not self._repeats(insides[place], [insides[other] for other in kept]):
                kept.append(place)
        return [
            self._slice(problem, keywords[place], found_on).model_copy(
                update={
                    "strength": association(problem.failed, insides[place]),
                    "strength_p": float(tested.among_all[place]),
                }
            )
            for place in kept
        ]

    def _repeats(self, inside: np.ndarray, others: Sequence[np.ndarray]) -> bool:
        return any(overlap(inside, other) > self.max_overlap for other in others)

    def _slice(self, problem: ClassProblem, keyword: Keyword, found_on: DataUse) -> FailureSlice:
        return name_slice(
            FailureSlice(
                class_name=problem.class_name,
                side=problem.side,
                rule=CaptionRule(column=self.caption_column, words=keyword.words),
                method=METHOD,
                parameters=asdict(self),
                found_on=found_on,
                n_found=int(keyword.inside.sum()),
            )
        )


FREQUENCIES_METHOD = "word-frequencies"


def word_frequencies(
    samples: SampleSet,
    problem: ClassProblem,
    *,
    caption_column: str = "caption",
    max_words: int = 2,
    min_captions: int = 5,
    max_share: float = 1.0,
    most: int = 10,
) -> tuple[WordFrequency, ...]:
    """Return the words that failures of a class say more often than its other samples, largest difference of shares first."""
    index = read_column(samples, caption_column)
    if index is None:
        return ()
    found = captioned_class(
        samples,
        problem,
        index,
        max_words=max_words,
        min_captions=min_captions,
        max_share=max_share,
        most=len(index.by_word) ** 2 + 1,
    )
    own = found.problem
    counted = [
        WordFrequency(
            class_name=problem.title,
            words=keyword.words,
            failed_with=int((keyword.inside & own.failed).sum()),
            n_failed=own.n_failed,
            right_with=int((keyword.inside & ~own.failed).sum()),
            n_right=own.n_right,
        )
        for keyword in found.keywords
    ]
    more = [one for one in counted if one.difference > 0]
    return tuple(sorted(more, key=lambda one: (-one.difference, one.words))[:most])


@dataclass(frozen=True, kw_only=True)
class WordFrequenciesDiscoverer:
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

    caption_column: str = "caption"
    max_words: Count = 2
    min_captions: Count = 5
    max_share: PositiveFraction = 1.0
    max_slices: Count = 5
    min_failures: Count = 2

    def __post_init__(self) -> None:
        check_bounds(self)

    @property
    def is_baseline(self) -> bool:
        return True

    @property
    def needs(self) -> tuple[Need, ...]:
        return (Need.CAPTIONS,)

    def discover(
        self,
        samples: SampleSet,
        criterion: FailureCriterion,
        *,
        seed: int,
        assistants: Assistants = NO_ASSISTANTS,
    ) -> Discovery:
        del seed, assistants
        found_on = DataUse.of(samples)
        has_captions = read_column(samples, self.caption_column) is not None
        missing = "" if has_captions else NO_CAPTIONS.format(column=self.caption_column)
        slices: list[FailureSlice] = []
        notes: list[ClassNote] = []
        for problem in class_problems(samples.dataset, samples.rows, criterion):
            note = missing or obstacle(problem, min_failures=self.min_failures, min_right=1)
            listed = () if note else self._listed(samples, problem)
            slices += [self._slice(problem, one, found_on) for one in listed]
            if not listed:
                nothing = "No word of captions is more frequent among failures."
                notes.append(ClassNote(class_name=problem.title, note=note or nothing))
        return Discovery(slices=tuple(slices), notes=tuple(notes), n_considered=len(slices))

    def _listed(self, samples: SampleSet, problem: ClassProblem) -> tuple[WordFrequency, ...]:
        return word_frequencies(
            samples,
            problem,
            caption_column=self.caption_column,
            max_words=self.max_words,
            min_captions=self.min_captions,
            max_share=self.max_share,
            most=self.max_slices,
        )

    def _slice(
        self, problem: ClassProblem, counted: WordFrequency, found_on: DataUse
    ) -> FailureSlice:
        return name_slice(
            FailureSlice(
                class_name=problem.class_name,
                side=problem.side,
                rule=CaptionRule(column=self.caption_column, words=counted.words),
                method=FREQUENCIES_METHOD,
                parameters=asdict(self),
                found_on=found_on,
                strength=counted.difference,
                n_found=counted.failed_with + counted.right_with,
            )
        )
