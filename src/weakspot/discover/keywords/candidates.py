"""Candidate keywords: short runs of words in captions, or the built-in vocabulary where there are none.

Captions of samples: given as a metadata column, or asked for.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from weakspot.core.arrays import BoolArray, IntArray
from weakspot.core.assistants import LEAST_TRUST, CaptionRows, TrustPhrases
from weakspot.core.errors import WeakspotError
from weakspot.core.failures import ClassProblem
from weakspot.core.samples import SampleSet
from weakspot.lexicon.caption_words import STOP_WORDS, keywords_in
from weakspot.lexicon.captions import Caption, counted, noun_of
from weakspot.lexicon.vocabulary import built_in_vocabulary
from weakspot.lexicon.wordnet import everyday_lemma, is_known


@dataclass(frozen=True, kw_only=True, eq=False)
class Captions:
    """What is known.

    Args:
        by_row: captions by row of the data set; rows without one are missing.
        problem: why there are none, or an empty text.
    """

    by_row: Mapping[int, str] = field(default_factory=dict)
    problem: str = ""

    def of(self, rows: IntArray) -> list[str]:
        return [self.by_row.get(int(row), "") for row in rows]


def read_captions(
    samples: SampleSet, wanted: Sequence[IntArray], *, column: str, ask: CaptionRows | None
) -> Captions:
    """Return the captions of the wanted rows: from the column if it holds any, else from whoever can be asked.

    Args:
        samples: where the rows are.
        wanted: rows, class by class; a row may be wanted more than once and is asked for once.
        column: metadata column.
        ask: rows to captions, or None.
    """
    rows = np.unique(np.concatenate([np.zeros(0, dtype=np.int64), *wanted]))
    given = _from_column(samples, rows, column)
    if given or ask is None or not len(rows):
        return Captions(by_row=given)
    try:
        answers = ask(rows)
    except WeakspotError as error:
        return Captions(problem=f"The captioner could not be asked: {error}")
    if len(answers) != len(rows):
        return Captions(
            problem=f"The captioner gave {len(answers)} captions for {len(rows)} samples."
        )
    return Captions(by_row=_speak(rows, answers))


def _from_column(samples: SampleSet, rows: IntArray, column: str) -> dict[int, str]:
    if column not in samples.dataset.metadata_names:
        return {}
    return _speak(rows, samples.dataset.metadata(column).take(pa.array(rows)).to_pylist())


def _speak(rows: IntArray, texts: Sequence[object]) -> dict[int, str]:
    return {
        int(row): text.strip()
        for row, text in zip(rows, texts, strict=True)
        if isinstance(text, str) and text.strip()
    }


@dataclass(frozen=True, kw_only=True, eq=False)
class Candidate:
    """A phrase that may say what failures have in common.

    Args:
        keyword: as shown to people.
        prompt: what is put to the encoder.
        containing: which samples' captions contain it [n], or None without captions.
    """

    keyword: str
    prompt: str
    containing: BoolArray | None = None


def caption_candidates(
    captions: Sequence[str], problem: ClassProblem, *, max_words: int, min_captions: int, most: int
) -> tuple[Candidate, ...]:
    """Return what enough captions say, most frequent first.

    Predictions play no part in who becomes a candidate, so that a null over the candidates holds. What every caption says, and the
    words of the class itself, tell nothing.

    Args:
        captions: one a sample of the problem; empty where there is none.
        problem: the class.
        max_words: longest phrase.
        min_captions: fewest captions that contain it.
        most: how many at most.
    """
    own = frozenset(everyday_lemma(word) for word in noun_of(problem.class_name).lower().split())
    stops = STOP_WORDS | (own if problem.side is None or problem.side == "present" else frozenset())
    found = [keywords_in(caption, max_words=max_words, stops=stops) for caption in captions]
    counts = Counter(keyword for keywords in found for keyword in keywords)
    n_captions = sum(bool(caption.strip()) for caption in captions)
    frequent = [keyword for keyword, count in counts.items() if min_captions <= count < n_captions]
    chosen = sorted(frequent, key=lambda keyword: (-counts[keyword], keyword))[:most]
    return tuple(
        Candidate(
            keyword=keyword,
            prompt=prompt_for(keyword),
            containing=np.array([keyword in keywords for keywords in found], dtype=np.bool_),
        )
        for keyword in chosen
    )


def prompt_for(keyword: str) -> str:
    """Return the sentence that is put to the encoder; the class is left out of it, so that only the keyword can speak.

    >>> [prompt_for(keyword) for keyword in ("grassy background", "green", "water", "orange fruit")]
    ['a photo of a grassy background', 'a photo of a green thing', 'a photo of water', 'a photo of an orange fruit']
    """
    last = keyword.rsplit(" ", maxsplit=1)[-1]
    if last in built_in_vocabulary().adjectives or (
        is_known(last, "adj") and not is_known(last, "noun")
    ):
        return Caption(noun=None, adjective=keyword).phrase
    return f"a photo of {counted(keyword, keyword)}"


def vocabulary_candidates(says: TrustPhrases | None = None) -> tuple[Candidate, ...]:
    """Return the built-in words, without those that the text side was not seen to tell.

    Args:
        says: see `Assistants.says`.
    """
    words = built_in_vocabulary()
    prompts = {
        **{
            adjective: Caption(noun=None, adjective=adjective).phrase
            for adjective in words.adjectives
        },
        **{place: Caption(noun=None, place=place).phrase for place in words.places},
        **{shown: Caption(noun=None, look=look).phrase for shown, look in words.looks.items()},
    }
    told = None if says is None else says(list(prompts))
    known = [True] * len(prompts) if told is None else [one >= LEAST_TRUST for one in told]
    return tuple(
        Candidate(keyword=keyword, prompt=prompt)
        for (keyword, prompt), is_known in zip(prompts.items(), known, strict=True)
        if is_known
    )
