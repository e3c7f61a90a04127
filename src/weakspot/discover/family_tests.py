"""Rules that are made without predictions, and tests of many memberships of the same samples."""

import hashlib
from collections.abc import Callable, Sequence
from typing import Protocol, runtime_checkable

import numpy as np

from weakspot.core.arrays import AnyArray, BoolArray, DoubleArray, IntArray, generator
from weakspot.core.failures import ClassProblem
from weakspot.core.group_tests import GroupTest
from weakspot.core.samples import SampleSet
from weakspot.core.slices import FailureSlice
from weakspot.core.statistics import log_ratios

BlindCandidate = tuple[FailureSlice, float]
"""A slice whose rule was made without predictions, and how much of the error rate it may use beside others of its method and class."""


@runtime_checkable
class BlindDiscoverer(Protocol):
    """A discoverer that lists rules without predictions. All samples may be asked about these, as long as all are counted."""

    @property
    def is_always_blind(self) -> bool:
        """Whether it finds nothing else when it is told the predictions of some samples."""

    def blind_candidates(
        self, samples: SampleSet, problem: ClassProblem, *, seed: int
    ) -> tuple[BlindCandidate, ...]:
        """Return rules of one class; neither the samples nor the problem say what the classifier predicted."""


MAX_DRAWS = 9_999
MIN_DRAWS = 999
MAX_STEPS = 300_000_000
HOPELESS = 0.1
"""Beyond this chance, after the fewest draws, no more are made: nobody acts on whether it is 0.2 or 0.21."""
ROUNDING = 1e-9
MAX_KNOWN = 64
_KNOWN: dict[bytes, tuple[DoubleArray, DoubleArray]] = {}
"""What was asked last: finding and verifying ask the same of the same samples."""


def family_test(
    failed: BoolArray,
    groups: IntArray | None,
    insides: Sequence[BoolArray],
    weights: Sequence[float] | AnyArray,
) -> tuple[DoubleArray, DoubleArray]:
    """Test whether failures are more frequent inside than outside, for a family of memberships that predictions did not choose.

    Returns p-values [m] of each membership by itself, and the chances [m] that any membership of the family stands out as much.

    Args:
        failed: which samples failed [n].
        groups: number of the group of every sample [n]; None: every sample is a group of its own.
        insides: memberships [m] of [n].
        weights: [m] positive numbers: which memberships are worth more, decided without predictions.

    >>> failed = np.arange(20) < 5
    >>> inside = [np.arange(20) < 5, np.arange(20) % 2 == 0]
    >>> own, among_all = family_test(failed, None, inside, [1.0, 1.0])
    >>> own.round(4).tolist(), (own <= among_all).all()
    ([0.0001, 0.5], np.True_)
    """
    key = _digest(failed, groups, *insides, np.asarray(weights, dtype=np.float64))
    if key not in _KNOWN:
        while len(_KNOWN) >= MAX_KNOWN:
            _KNOWN.pop(next(iter(_KNOWN)))
        _KNOWN[key] = _family_test(failed, groups, insides, weights)
    return _KNOWN[key]


def _digest(*arrays: AnyArray | None) -> bytes:
    digest = hashlib.blake2b(digest_size=16)
    for array in arrays:
        digest.update(b"none" if array is None else np.ascontiguousarray(array).tobytes())
    return digest.digest()


def _family_test(
    failed: BoolArray,
    groups: IntArray | None,
    insides: Sequence[BoolArray],
    weights: Sequence[float] | AnyArray,
) -> tuple[DoubleArray, DoubleArray]:
    test = GroupTest(failed, groups)
    own = np.array(test.p_values(insides))
    if len(own) < 2:  # noqa: PLR2004 - a family of one
        return own, own
    members = np.stack([test.shares(inside) for inside in insides])
    shares = np.log(np.asarray(weights, dtype=np.float64) / np.sum(weights))
    measure = _grouped_measure(test, members) if test.has_groups else _ratio_measure(test, members)
    observed = measure(members @ test.scores[:, None])[:, 0] - shares
    dealt = test.dealt(members)
    n_draws = int(np.clip(MAX_STEPS // max(dealt.steps, 1.0), MIN_DRAWS, MAX_DRAWS))
    random = generator(0, "family", f"{members.shape} {int(test.scores.sum())}")
    best: list[DoubleArray] = []
    n_made, n_reached, least = 0, 0, float(observed.min()) + ROUNDING
    for sums in dealt.sums(n_draws, random):
        best.append((measure(sums.T) - shares[:, None]).min(axis=0))
        n_made += len(sums)
        n_reached += int(np.count_nonzero(best[-1] <= least))
        if n_made >= MIN_DRAWS and n_reached > HOPELESS * n_made:
            break
    drawn = np.sort(np.concatenate(best))
    reached = np.searchsorted(drawn, observed + ROUNDING, side="right")
    drawn_p = (1.0 + reached) / (1.0 + n_made)
    # Draws cannot show smaller chances than one in so many; where even the sum of all chances is smaller, that sum is the answer.
    bound = own * np.exp(-shares)
    among_all = np.where(reached == 0, np.minimum(bound, drawn_p), drawn_p)
    return own, np.asarray(np.maximum(among_all, own))


def _ratio_measure(test: GroupTest, members: DoubleArray) -> Callable[[DoubleArray], DoubleArray]:
    """Return what says how much less likely numbers of failures inside [m, b] are with a gap than without."""
    sizes = members.sum(axis=1).round().astype(np.int64)
    table = -log_ratios(sizes, members.shape[1], int(test.scores.sum()))
    rows = np.arange(len(members))[:, None]

    def measure(failures: DoubleArray) -> DoubleArray:
        return np.asarray(table[rows, failures.round().astype(np.int64)])

    return measure


def _grouped_measure(test: GroupTest, members: DoubleArray) -> Callable[[DoubleArray], DoubleArray]:
    """Return what gives the logarithm of a normal tail [m, b] for sums of shares inside [m, b]; draws make it a p-value."""
    from scipy.special import log_ndtr

    mean = np.zeros(len(members))
    variance = np.zeros(len(members))
    for own in test.bins:
        scores = test.scores[own]
        mean += members[:, own].sum(axis=1) * scores.mean()
        variance += (
            members[:, own].var(axis=1) * scores.var() * len(own) ** 2 / max(len(own) - 1, 1)
        )
    spread = np.sqrt(np.maximum(variance, 1e-12))

    def measure(sums: DoubleArray) -> DoubleArray:
        return np.asarray(log_ndtr(-(sums - mean[:, None]) / spread[:, None]))

    return measure
