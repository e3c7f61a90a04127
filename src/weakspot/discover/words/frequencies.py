"""Baseline: a plain table of how often failures and other samples say a word. Nothing in it is tested."""

from dataclasses import asdict, dataclass

from weakspot.core.assistants import NOBODY, Assistants
from weakspot.core.bounds import Count, PositiveFraction, check_bounds
from weakspot.core.class_embeddings import obstacle
from weakspot.core.failures import ClassProblem, FailureCriterion, class_problems
from weakspot.core.needs import Need
from weakspot.core.roles import Discovery
from weakspot.core.run import ClassNote
from weakspot.core.samples import SampleSet
from weakspot.core.slices import DataUse, FailureSlice
from weakspot.discover.words.vocabulary import (
    NO_CAPTIONS,
    captioned_class,
    name_slice,
    read_column,
)
from weakspot.lexicon.caption_rule import CaptionRule
from weakspot.lexicon.word_frequency import WordFrequency

METHOD = "word-frequencies"


def word_frequencies(  # noqa: PLR0913 - what bounds a vocabulary
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
        assistants: Assistants = NOBODY,
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
                method=METHOD,
                parameters=asdict(self),
                found_on=found_on,
                strength=counted.difference,
                n_found=counted.failed_with + counted.right_with,
            )
        )
