"""Which words of a class's captions are worth asking about; what the classifier said plays no part in it."""

from dataclasses import dataclass

import numpy as np

from weakspot.core.arrays import BoolArray
from weakspot.core.failures import ClassProblem, Side
from weakspot.core.samples import SampleSet
from weakspot.core.slices import FailureSlice, SliceName
from weakspot.lexicon.caption_index import CaptionIndex, caption_index
from weakspot.lexicon.caption_rule import CaptionRule
from weakspot.lexicon.caption_words import count_keywords
from weakspot.lexicon.captions import noun_of
from weakspot.lexicon.wordnet import everyday_lemma

MOST_CELLS = 30_000_000
FEWEST_KEYWORDS = 20
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


def captioned_class(  # noqa: PLR0913 - what bounds a vocabulary
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
    affordable = max(FEWEST_KEYWORDS, MOST_CELLS // max(len(texts), 1))
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
