"""Rules that are made without predictions, and who can list them."""

from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from weakspot.core.failures import ClassProblem
from weakspot.core.samples import SampleSet
from weakspot.core.slices import FailureSlice


@dataclass(frozen=True, kw_only=True, eq=False)
class BlindCandidate:
    """A rule that was made without predictions.

    Args:
        found: the slice; `found_on` is `DataUse.nothing()`.
        weight: how much of the error rate it may use, compared with others of its method and class.
    """

    found: FailureSlice
    weight: float = 1.0


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
