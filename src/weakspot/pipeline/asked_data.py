"""Which samples are asked, and about which classifier: what two questions must share to be counted together."""

import hashlib
from heapq import nsmallest

import numpy as np

from weakspot.core.arrays import IntArray
from weakspot.core.dataset import Dataset, Task
from weakspot.core.failures import predicted_classes, predicted_labels
from weakspot.core.identity import identities
from weakspot.core.record import Record

MOST_MARKS = 256
SAME_SAMPLES = 0.5
OTHER_ANSWERS = 0.01
"""Share of samples on which one classifier may answer otherwise, because a machine rounds otherwise, and still be the same."""
SPARE_ANSWERS = 1
AT_ONCE = 100_000


class AskedData(Record):
    """The samples that are asked, with the predictions that they are asked about.

    Args:
        digest: hash over both, in whatever order of samples and under whatever labels.
        n_samples: different samples.
        marks: the smallest hashes of single samples: by these, samples that were asked before are known again among others.
        answers: the prediction for every mark, shortened; empty where there is none.
        has_looks: whether questions in the file of earlier versions were about these samples.
    """

    digest: str
    n_samples: int
    marks: tuple[str, ...]
    answers: tuple[str, ...] = ()
    has_looks: bool = False

    @classmethod
    def of(cls, dataset: Dataset, rows: IntArray) -> "AskedData":
        """Return what is asked; samples without an image are known by their keys."""
        said = dict(zip(identities(dataset, rows), _answers(dataset, rows), strict=True))
        whole = "\n".join(sorted(f"{one} {answer}" for one, answer in said.items()))
        marks = {hashlib.sha256(one.encode()).hexdigest()[:16]: one for one in said}
        smallest = nsmallest(MOST_MARKS, marks)
        return cls(
            digest=hashlib.sha256(whole.encode()).hexdigest()[:32],
            n_samples=len(said),
            marks=tuple(smallest),
            answers=tuple(said[marks[mark]] for mark in smallest),
        )

    def is_mostly(self, other: "AskedData") -> bool:
        """Return whether two sets of samples share their questions: mostly the same samples, and the same classifier."""
        return self.digest == other.digest or (
            self.has_same_samples(other) and self.has_same_classifier(other)
        )

    def has_same_samples(self, other: "AskedData") -> bool:
        """Return whether half of the smaller of two sets is in the other.

        A sample more or less, another split beside the first, or other labels make no fresh samples.
        """
        smallest = sorted({*self.marks, *other.marks})[:MOST_MARKS]
        both = {*self.marks} & {*other.marks}
        alike = sum(one in both for one in smallest) / max(len(smallest), 1)
        n_shared = alike / (1.0 + alike) * (self.n_samples + other.n_samples)
        return n_shared >= SAME_SAMPLES * min(self.n_samples, other.n_samples)

    def has_same_classifier(self, other: "AskedData") -> bool:
        """Return whether the predictions for shared samples are nearly all the same; where none is known, that is assumed.

        Labels and what counts as a failure play no part: both can be set, and setting them makes no other classifier.
        """
        own, theirs = (dict(zip(one.marks, one.answers, strict=False)) for one in (self, other))
        shared = [mark for mark in own if own[mark] and theirs.get(mark)]
        n_other = sum(own[mark] != theirs[mark] for mark in shared)
        return n_other <= OTHER_ANSWERS * len(shared) + SPARE_ANSWERS


def _answers(dataset: Dataset, rows: IntArray) -> list[str]:
    """Return the prediction for every row by the names of its classes, shortened; the order of classes plays no part."""
    if not dataset.has_predictions:
        return [""] * len(rows)
    if dataset.task is Task.SINGLE_LABEL:
        short = [*map(_short, dataset.class_names), ""]
        parts = [predicted_classes(dataset, part) for part in _parts(rows)]
        codes = np.concatenate(parts) if parts else np.zeros(0, dtype=np.int64)
        return [short[code] for code in codes.tolist()]
    names = np.array(dataset.class_names, dtype=np.str_)
    return [
        _short("\n".join(sorted(names[said].tolist())))
        for part in _parts(rows)
        for said in predicted_labels(dataset, part)
    ]


def _parts(rows: IntArray) -> list[IntArray]:
    return [rows[start : start + AT_ONCE] for start in range(0, len(rows), AT_ONCE)]


def _short(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:4]
