"""A problem whose truth is known."""

from dataclasses import dataclass, field
from typing import Literal

from weakspot.core.arrays import BoolArray
from weakspot.core.assistants import NOBODY, Assistants
from weakspot.core.failures import FailureCriterion, Side
from weakspot.core.samples import SampleSet
from weakspot.core.slices import FailureSlice

ProblemKind = Literal["rare", "correlation", "noisy-label", "several", "null"]


@dataclass(frozen=True, kw_only=True, eq=False)
class KnownSlice:
    """A slice on which the classifier fails, known because it was put there.

    Args:
        class_name: the true class.
        inside: which rows of the data set are members [n].
        words: right words for it; any of them in a name makes the name right.
        same_attribute: words about the same attribute with other values; a name with one of them is half right.
        side: for multi-label tasks.
    """

    class_name: str
    inside: BoolArray
    words: tuple[str, ...] = ()
    same_attribute: tuple[str, ...] = ()
    side: Side | None = None

    def is_about(self, found: FailureSlice) -> bool:
        """Return whether a found slice is of the same class and side."""
        return found.class_name == self.class_name and found.side == self.side


@dataclass(frozen=True, kw_only=True, eq=False)
class BenchProblem:
    """Samples, a classifier's outcomes on them, and where it is known to fail.

    Args:
        source: where the pictures or features come from, for example `planted`.
        kind: what was planted.
        number: number of the world.
        samples: all samples with outcomes and vectors.
        discovery: the samples that methods may look at.
        confirmation: the samples that slices are proven on.
        truths: what must be found; empty for the null.
        fresh: further samples, seen by no step, on which it shows whether a confirmed slice is true; None if there are none.
        assistants: whom methods may ask.
        criterion: what counts as a failure.
    """

    source: str
    kind: ProblemKind
    number: int
    samples: SampleSet
    discovery: SampleSet
    confirmation: SampleSet
    truths: tuple[KnownSlice, ...]
    fresh: SampleSet | None = None
    assistants: Assistants = NOBODY
    criterion: FailureCriterion = field(default_factory=FailureCriterion)

    @property
    def title(self) -> str:
        """Return the problem in words."""
        return f"{self.source}, {self.kind}, {self.number}"
