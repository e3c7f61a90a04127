"""What makes two questions to held-out samples the same one: the same members of the same samples, with the same failures."""

import hashlib

import numpy as np

from weakspot.core.arrays import BoolArray, IntArray
from weakspot.core.dataset import Dataset


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
