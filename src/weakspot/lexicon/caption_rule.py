"""Membership by what a caption says."""

from typing import ClassVar, Literal

import numpy as np

from weakspot.core.arrays import BoolArray, DoubleArray, IntArray
from weakspot.core.errors import DataError
from weakspot.core.rules.rule import Rule, built_in
from weakspot.core.samples import SampleSet
from weakspot.lexicon.caption_index import CaptionIndex, caption_index


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
