"""Questions to held-out samples: when two are the same one, and what each may cost when they are put one after another."""

import hashlib
from collections.abc import Sequence
from functools import lru_cache

import numpy as np

from weakspot.core.arrays import BoolArray, DoubleArray, IntArray
from weakspot.core.dataset import Dataset
from weakspot.core.errors import InputError
from weakspot.core.statistics import Correction, adjusted_p_values


class QuestionKeys:
    """Names questions by what their answer follows from, whoever asks and in whatever words.

    Args:
        dataset: the samples that are asked.
    """

    def __init__(self, dataset: Dataset) -> None:
        self._dataset = dataset
        self._ids: dict[bytes, tuple[bytes, IntArray]] = {}

    def key(
        self,
        title: str,
        rows: IntArray,
        inside: BoolArray,
        failed: BoolArray,
        *,
        groups: IntArray | None = None,
    ) -> str:
        """Return the name of a question.

        Args:
            title: the class, as problems call it.
            rows: [n] samples that answer.
            inside: [n] members.
            failed: [n] which of the samples fail.
            groups: [n] group of every sample, None if each stands for itself.
        """
        ids, order = self._ids_of(rows)
        parts = (
            title.encode(),
            ids,
            np.packbits(inside[order]).tobytes(),
            np.packbits(failed[order]).tobytes(),
            b"" if groups is None else _number(groups[order]),
        )
        return hashlib.sha256(b"\n".join(parts)).hexdigest()[:24]

    def _ids_of(self, rows: IntArray) -> tuple[bytes, IntArray]:
        """Return a hash over the ids of rows, and the order of the ids: the order of rows makes no other question."""
        # Many slices of a class are asked of the same samples; their ids are hashed once.
        known = np.asarray(rows, dtype=np.int64).tobytes()
        place = hashlib.blake2b(known, digest_size=16).digest()
        if place not in self._ids:
            ids = np.array(self._dataset.sample_ids(rows), dtype=np.str_)
            order = np.argsort(ids, kind="stable")
            digest = hashlib.sha256("\n".join(ids[order].tolist()).encode()).digest()
            self._ids[place] = digest, order
        return self._ids[place]


def _number(groups: IntArray) -> bytes:
    """Return groups numbered by where each occurs first, so that only who is with whom matters."""
    _, first, codes = np.unique(groups, return_index=True, return_inverse=True)
    return np.argsort(np.argsort(first))[codes].astype(np.int64).tobytes()


FIRST_SHARE = 0.8
"""Most people ask once. A first batch that got all would leave nothing; one that got half would cost everybody power."""
DECAY = 1.5
ZETA = 2.612375348685488
"""Sum of k to the minus DECAY over all k from 1 on."""


@lru_cache(maxsize=4096)
def spending_share(batch: int) -> float:
    """Return the part of the error rate that a batch may spend, counted from 1; all parts together are one.

    >>> [round(spending_share(batch), 3) for batch in (1, 2, 3, 4)]
    [0.8, 0.077, 0.027, 0.015]
    """
    if batch < 1:
        raise InputError("Batches are counted from 1.", given=batch)
    if batch == 1:
        return FIRST_SHARE
    return float((1.0 - FIRST_SHARE) * (batch - 1) ** -DECAY / ZETA)


def largest_accepted_p(batch: int, n_fruitful: int, alpha: float, correction: Correction) -> float:
    """Return up to which p-value a single question would be a finding.

    Args:
        batch: its place among all that was asked, from 1.
        n_fruitful: batches so far that had a finding.
        alpha: error rate over everything.
        correction: which error rate is meant.

    >>> round(largest_accepted_p(2, 0, 0.05, "fdr"), 5)
    0.00383
    """
    bonus = n_fruitful + 1 if correction == "fdr" else 1
    return min(alpha, alpha * spending_share(batch) * bonus)


AskedFamily = tuple[DoubleArray, DoubleArray, float]
"""Tests of one batch that are corrected together: p-values [m]; weights [m], positive and fixed before the samples were asked; and the
part of the batch's share that is this family's. The parts of a batch are at most one together."""


def online_q_values(
    batches: Sequence[Sequence[AskedFamily]], *, alpha: float, correction: Correction
) -> tuple[list[list[DoubleArray]], int]:
    """Return for every test the error rate at which its batch would just accept it, and how many batches had a finding at `alpha`.

    What is asked later changes nothing of what was answered before. Families of one batch do not count each other's findings. A batch
    counts once for later ones, however much it found: hundreds of combinations that share one cause are no licence to be wrong.

    >>> family = np.array([0.01]), np.ones(1), 1.0
    >>> values, n_fruitful = online_q_values([[family], [family]], alpha=0.05, correction="fwer")
    >>> [round(float(batch[0][0]), 3) for batch in values], n_fruitful
    ([0.012, 0.131], 1)
    """
    values: list[list[DoubleArray]] = []
    n_fruitful = 0
    for place, families in enumerate(batches, start=1):
        adjusted = [
            adjusted_p_values(
                p_values,
                correction=correction,
                weights=weights,
                share=spending_share(place) * part,
                earlier=n_fruitful,
            )
            for p_values, weights, part in families
        ]
        values.append(adjusted)
        n_fruitful += any(bool(np.any(one <= alpha)) for one in adjusted)
    return values, n_fruitful
