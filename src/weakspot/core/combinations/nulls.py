"""How strongly failures gather in a combination, and how strongly they do by chance in the best of all."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np

from weakspot.core.arrays import AnyArray, BoolArray, DoubleArray, IntArray
from weakspot.core.combinations.cells import LEAST_WORK_PER_THREAD, Cover
from weakspot.core.combinations.counting import CombinationCounter, Combinations, CountedPiece
from weakspot.core.group_dealing import deal_anew

MOST_DEALT = 4_000_000


def evidence_of(found: Combinations) -> DoubleArray:
    """Return for every combination [m] how much likelier the counts are with a failure rate of its own, as a logarithm.

    It is half the likelihood-ratio statistic, about as large as minus the logarithm of a p-value; minus infinity where failures are
    no more frequent than elsewhere.
    """
    return _evidence(found, np.zeros(len(found)))


def scores_of(found: Combinations) -> DoubleArray:
    """Return evidence minus penalty [m], so that combinations of all orders can be compared.

    There are many more triples than single values, so that the best of them has more evidence by chance alone. With the penalty
    every order has the same share in what chance brings forward.
    """
    return _evidence(found, penalties_of(found))


def penalties_of(found: Combinations) -> DoubleArray:
    """Return for every combination [m] the logarithm of the number of combinations of the same order."""
    counts = np.bincount(found.orders, minlength=1)
    return np.log(np.maximum(counts, 1))[found.orders]


class ShuffledFailures:
    """The same number of failures dealt out anew, again and again: what the best of all combinations reaches by chance.

    Args:
        counter: the combinations.
        failed: [n] which samples really failed.
        groups: [n] number of the group of every sample, failures of which are dealt out together; None: each is its own.
    """

    def __init__(
        self, counter: CombinationCounter, failed: BoolArray, groups: IntArray | None = None
    ) -> None:
        self._failed, self._groups = failed, groups
        found = counter.count(failed)
        self._columns, self._n_threads = counter.columns, counter.n_threads
        self._n_samples, self._n_failed = found.n_samples, found.n_failed
        self._powers = _powers(found.n_samples)
        # The smaller side is counted, whichever that is.
        self._holds_right = 2 * found.n_failed > found.n_samples
        self._n_few = found.n_samples - found.n_failed if self._holds_right else found.n_failed
        fixed = _fixed_parts(found, self._powers, penalties_of(found))
        starts = np.cumsum([0, *(len(piece.places) for piece in counter.pieces)])
        self._pieces: list[tuple[CountedPiece, Cover, DoubleArray]] = [
            (piece, piece.plan.cover(self._n_few), fixed[start : start + len(piece.places)])
            for piece, start in zip(counter.pieces, starts, strict=False)
        ]

    def maxima(self, n_shuffles: int, draws: np.random.Generator) -> DoubleArray:
        """Return the largest score of any combination after every shuffle [n_shuffles]."""
        maxima = np.full(n_shuffles, -np.inf)
        at_a_time = max(1, MOST_DEALT // max(self._n_samples, 1))
        for start in range(0, n_shuffles, at_a_time):
            part = maxima[start : start + at_a_time]
            self._raise(self._dealt(len(part), draws), part)
        return maxima

    def _dealt(self, n_shuffles: int, draws: np.random.Generator) -> AnyArray:
        """Return the samples of the smaller side after every shuffle [n_shuffles, k]."""
        if self._groups is not None:
            dealt = deal_anew(self._failed, self._groups, n_shuffles, draws)
            places = np.nonzero(dealt != self._holds_right)[1].astype(np.int32)
            return places.reshape(n_shuffles, self._n_few)
        places = np.broadcast_to(
            np.arange(self._n_samples, dtype=np.int32), (n_shuffles, self._n_samples)
        )
        return np.ascontiguousarray(draws.permuted(places, axis=1)[:, : self._n_few])

    def _raise(self, rows: AnyArray, maxima: DoubleArray) -> None:
        work = rows.size * sum(len(cover.blocks) for _, cover, _ in self._pieces)
        n_parts = max(1, min(self._n_threads, len(rows), work // LEAST_WORK_PER_THREAD))
        ends = np.linspace(0, len(rows), n_parts + 1).astype(np.int64)

        def score(part: int) -> None:
            chosen = slice(ends[part], ends[part + 1])
            self._raise_part(rows[chosen], maxima[chosen])

        if n_parts == 1:
            score(0)
            return
        with ThreadPoolExecutor(n_parts) as pool:
            list(pool.map(score, range(n_parts)))

    def _raise_part(self, rows: AnyArray, maxima: DoubleArray) -> None:
        from weakspot.core.combinations.kernels import raise_maxima

        totals = (self._n_samples, self._n_failed, int(self._holds_right))
        for piece, cover, fixed in self._pieces:
            plan = (piece.plan.tuples, piece.plan.offsets, cover.grouped, cover.starts)
            layout = (piece.plan.sizes, cover.blocks, plan, piece.plan.n_cells)
            raise_maxima(
                self._columns.columns,
                rows,
                layout,
                (piece.places, piece.n_inside, fixed, self._powers),
                totals,
                maxima,
            )


def _evidence(found: Combinations, penalties: DoubleArray) -> DoubleArray:
    # Term by term as the compiled loop adds them: equal counts must give equal numbers, because ties decide on chances.
    failed, n_inside = found.failed_inside, found.n_inside
    powers = _powers(found.n_samples)
    right_outside = found.n_samples - n_inside - found.n_failed + failed
    evidence = (
        powers[failed]
        + powers[n_inside - failed]
        + powers[found.n_failed - failed]
        + powers[right_outside]
    )
    is_above = failed * found.n_samples > n_inside * found.n_failed
    return np.where(is_above, evidence + _fixed_parts(found, powers, penalties), -np.inf)


def _fixed_parts(found: Combinations, powers: DoubleArray, penalties: DoubleArray) -> DoubleArray:
    """Return what does not depend on how many failures are inside [m]."""
    n_samples, n_failed = found.n_samples, found.n_failed
    constant = powers[n_samples] - powers[n_failed] - powers[n_samples - n_failed]
    return np.asarray(
        constant - powers[found.n_inside] - powers[n_samples - found.n_inside] - penalties
    )


def _powers(n_samples: int) -> DoubleArray:
    counts = np.arange(n_samples + 1, dtype=np.float64)
    return np.asarray(counts * np.log(np.maximum(counts, 1.0)))
