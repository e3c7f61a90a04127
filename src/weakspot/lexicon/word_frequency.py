"""How often captions say a word: a plain count, nothing tested."""

import csv
import io
from collections.abc import Sequence
from dataclasses import dataclass

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
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(COLUMNS)
    for one in frequencies:
        counts = one.failed_with, one.n_failed, one.right_with, one.n_right
        writer.writerow([one.class_name, one.words, *counts, round(one.difference, 6)])
    return stream.getvalue()
