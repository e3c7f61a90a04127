"""Membership by what a caption says: which rows of a text column say a word, and how often."""

import re
from collections import OrderedDict, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar, Literal

import numpy as np
import pyarrow as pa

from weakspot.core.arrays import BoolArray, DoubleArray, IntArray
from weakspot.core.errors import DataError
from weakspot.core.rules import Rule, built_in
from weakspot.core.samples import SampleSet
from weakspot.store.csv_tables import csv_text
from weakspot.words.caption_words import runs_of_words

COLUMNS = ("class", "words", "failed_with", "n_failed", "right_with", "n_right", "difference")


@dataclass(frozen=True, kw_only=True)
class WordFrequency:
    """How often captions of a class say a word.

    Args:
        class_name: the class, as people read it.
        words: lemmas.
        failed_with: failures that say it.
        n_failed: failures with a caption.
        right_with: other samples that say it.
        n_right: other samples with a caption.
    """

    class_name: str
    words: str
    failed_with: int
    n_failed: int
    right_with: int
    n_right: int

    @property
    def difference(self) -> float:
        """Return the share of failures that say it minus the share of other samples."""
        return self.failed_with / max(self.n_failed, 1) - self.right_with / max(self.n_right, 1)


def frequency_table(frequencies: Sequence[WordFrequency]) -> str:
    """Return counts as CSV."""
    rows = [
        [
            one.class_name,
            one.words,
            one.failed_with,
            one.n_failed,
            one.right_with,
            one.n_right,
            round(one.difference, 6),
        ]
        for one in frequencies
    ]
    return csv_text(COLUMNS, rows)


MAX_REMEMBERED = 2


@dataclass(frozen=True, kw_only=True, eq=False)
class CaptionIndex:
    """The captions of a column.

    Args:
        texts: the different captions.
        codes: of every row the number of its caption [n]; -1 without one.
        by_word: numbers of the captions that say a word, by lemma.
    """

    texts: tuple[str, ...]
    codes: IntArray
    by_word: dict[str, IntArray]

    def has_caption(self, rows: IntArray) -> BoolArray:
        return np.asarray(self.codes[rows] >= 0, dtype=np.bool_)

    def texts_of(self, rows: IntArray) -> list[str]:
        """Return the captions of rows, empty where there is none."""
        return [self.texts[code] if code >= 0 else "" for code in self.codes[rows].tolist()]

    def say(self, keyword: str, rows: IntArray) -> BoolArray:
        """Return which rows say a lemma, or neighbouring lemmas with spaces between them."""
        said = np.zeros(len(self.texts) + 1, dtype=np.bool_)
        said[self._captions_with(keyword)] = True
        return np.asarray(said[self.codes[rows]], dtype=np.bool_)

    def _captions_with(self, keyword: str) -> IntArray:
        nothing = np.zeros(0, dtype=np.int64)
        words = keyword.split(" ")
        found = self.by_word.get(words[0], nothing)
        for word in words[1:]:
            found = np.intersect1d(found, self.by_word.get(word, nothing), assume_unique=True)
        if len(words) == 1:
            return found
        # The lemma of one word may have a space in it: "well-lit" is said as "well lit".
        neighbours = re.compile("\n" + "[ \n]".join(map(re.escape, words)) + "\n")
        together = [code for code in found.tolist() if neighbours.search(self._spoken[code])]
        return np.array(together, dtype=np.int64)

    @cached_property
    def _spoken(self) -> tuple[str, ...]:
        """Of every caption its lemmas, a line each and an empty line after each run, so that it is taken apart once."""
        return tuple(
            "".join("\n" + "\n".join(run) + "\n" for run in runs_of_words(text))
            for text in self.texts
        )


_indices: OrderedDict[tuple[int, ...], tuple[pa.ChunkedArray, CaptionIndex]] = OrderedDict()


def caption_index(column: pa.ChunkedArray) -> CaptionIndex | None:
    """Return the index of a column of texts; None if it holds something else. Those asked for last are remembered."""
    if not _is_text(column.type):
        return None
    key = _identity(column)
    known = _indices.get(key)
    if known is None:
        # The column is kept beside its index, so that nothing else can come to lie at its address.
        known = _indices[key] = (column, _index(column))
    _indices.move_to_end(key)
    while len(_indices) > MAX_REMEMBERED:
        _indices.popitem(last=False)
    return known[1]


def _is_text(kind: pa.DataType) -> bool:
    plain = kind.value_type if pa.types.is_dictionary(kind) else kind
    return bool(pa.types.is_string(plain) or pa.types.is_large_string(plain))


def _identity(column: pa.ChunkedArray) -> tuple[int, ...]:
    """Return where a column lies in memory: the same for all tables that share it."""
    parts: list[int] = []
    for chunk in column.chunks:
        parts += [chunk.offset, len(chunk)]
        parts += [0 if buffer is None else buffer.address for buffer in chunk.buffers()]
    return tuple(parts)


def _index(column: pa.ChunkedArray) -> CaptionIndex:
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    coded = column.combine_chunks().dictionary_encode()
    texts = [(text or "").strip() for text in coded.dictionary.to_pylist()]
    kept = [place for place, text in enumerate(texts) if text]
    new_codes = np.full(len(texts) + 1, -1, dtype=np.int64)
    new_codes[kept] = np.arange(len(kept))
    by_word: dict[str, list[int]] = defaultdict(list)
    for code, place in enumerate(kept):
        for word in {word for run in runs_of_words(texts[place]) for word in run}:
            by_word[word].append(code)
    return CaptionIndex(
        texts=tuple(texts[place] for place in kept),
        codes=new_codes[np.asarray(coded.indices.fill_null(len(texts)), dtype=np.int64)],
        by_word={word: np.array(codes, dtype=np.int64) for word, codes in by_word.items()},
    )


@built_in
class CaptionRule(Rule):
    """Members are the samples whose caption says a word, or neighbouring words, in any form; unknown without a caption.

    Args:
        column: metadata column that holds captions.
        words: lemmas with a space between them: `umbrella` is also said by “two umbrellas”, `wet road` by “on wet roads”, and not by
            “wet, dark road”.
    """

    complexity: ClassVar[int] = 0

    kind: Literal["caption"] = "caption"
    column: str = "caption"
    words: str

    def scores(self, samples: SampleSet, rows: IntArray) -> DoubleArray:
        """Return 1 for members, 0 for the others, NaN without a caption."""
        index = self._index(samples)
        said = index.say(self.words, rows).astype(np.float64)
        return np.where(index.has_caption(rows), said, np.nan)

    def members(self, samples: SampleSet, rows: IntArray) -> BoolArray:
        return self._index(samples).say(self.words, rows)

    def is_known(self, samples: SampleSet, rows: IntArray) -> BoolArray:
        return self._index(samples).has_caption(rows)

    @property
    def columns(self) -> frozenset[str]:
        return frozenset({self.column})

    @property
    def sentence(self) -> str:
        """Who belongs to the slice.

        >>> CaptionRule(words="wet road").sentence
        'Samples whose “caption” says “wet road”, in any form of these words.'
        """
        which = "these words" if " " in self.words else "this word"
        return f"Samples whose “{self.column}” says “{self.words}”, in any form of {which}."

    def _index(self, samples: SampleSet) -> CaptionIndex:
        index = caption_index(samples.dataset.metadata(self.column))
        if index is None:
            raise DataError(
                f"The column {self.column!r} holds no captions.",
                given=str(samples.dataset.metadata(self.column).type),
                fix="Give captions as text.",
            )
        return index
