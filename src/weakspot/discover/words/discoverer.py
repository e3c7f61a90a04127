"""Words of captions as slices: whoever says the word is a member, so the name is true of all of them."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass

import numpy as np

from weakspot.core.assistants import NOBODY, Assistants
from weakspot.core.blind import BlindCandidate
from weakspot.core.bounds import Count, PositiveFraction, check_bounds
from weakspot.core.class_embeddings import obstacle
from weakspot.core.failures import ClassProblem, FailureCriterion, class_problems
from weakspot.core.family_tests import family_test
from weakspot.core.needs import Need
from weakspot.core.roles import Discovery
from weakspot.core.run import ClassNote
from weakspot.core.samples import SampleSet
from weakspot.core.slices import DataUse, FailureSlice
from weakspot.core.statistics import association, overlap
from weakspot.discover.words.vocabulary import (
    NO_CAPTIONS,
    CaptionedClass,
    Keyword,
    captioned_class,
    name_slice,
    read_column,
)
from weakspot.lexicon.caption_rule import CaptionRule

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
        assistants: Assistants = NOBODY,
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
