"""What rules are put to: counts of the run, of slices, and of the same samples before and now."""

from dataclasses import dataclass, field
from enum import StrEnum

from weakspot.core.arrays import IntArray
from weakspot.core.statistics import Correction
from weakspot.pipeline.asked_data import AskedData


class SubjectKind(StrEnum):
    """What a rule is put to."""

    OVERALL = "overall"
    CLASS = "class"
    SLICE = "slice"
    NAMED = "named slice"


@dataclass(frozen=True, kw_only=True)
class Tally:
    """How often the classifier fails on a subject and, for slices, on the rest of the class.

    Args:
        subject: how it is called.
        kind: what it is.
        n_samples: samples of the subject.
        n_failed: failures among them.
        n_outside: samples of the class outside a slice.
        failed_outside: failures among them.
        slice_id: of a confirmed slice.
        also_called: what earlier versions called it, so that policies that name it so go on meaning it.
        is_finding: whether it is a confirmed slice that no stronger one explains, or a class that is confirmed to fail as a whole.
    """

    subject: str
    kind: SubjectKind
    n_samples: int
    n_failed: int
    n_outside: int = 0
    failed_outside: int = 0
    slice_id: str = ""
    also_called: str = ""
    is_finding: bool = False

    @property
    def accuracy(self) -> float:
        """Return the share that does not fail, 1 without samples."""
        return 1.0 - self.n_failed / self.n_samples if self.n_samples else 1.0


@dataclass(frozen=True, kw_only=True)
class PairedTally:
    """The same samples before and now.

    Args:
        subject: how they are called.
        kind: what they are.
        n_samples: samples that both classifiers have a result for.
        right_before: of them right with the baseline.
        right_now: of them right now.
        gained: wrong before and right now.
        lost: right before and wrong now.
        slice_id: of a slice of the baseline.
        units: the groups of samples in which something changed, by number [u]; None if every sample that changed is on its own.
        nets: samples lost minus samples gained in each of them [u].
    """

    subject: str
    kind: SubjectKind
    n_samples: int
    right_before: int
    right_now: int
    gained: int
    lost: int
    slice_id: str = ""
    units: IntArray | None = field(default=None, compare=False, repr=False)
    nets: IntArray | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, kw_only=True)
class Sighting:
    """A finding of the run, and whether the baseline knows it.

    Args:
        subject: its title.
        slice_id: its id.
        p_value: of its evidence.
        q_value: of its evidence.
        weight: of its test.
        known_id: the slice of the baseline that it is; empty if there is none.
        known_as: the title of that slice.
        overlap: with the slice of the baseline that it has most members in common with.
    """

    subject: str
    slice_id: str
    p_value: float
    q_value: float
    weight: float = 1.0
    known_id: str = ""
    known_as: str = ""
    overlap: float = 0.0

    @property
    def is_new(self) -> bool:
        """Return whether the baseline has no such slice."""
        return not self.known_id


@dataclass(frozen=True, kw_only=True)
class Figures:
    """Everything that the rules of a policy are put to.

    Args:
        tallies: overall, classes, confirmed slices, named slices.
        n_tested: slices that were tested on the samples on which the confirmed ones were chosen.
        correction: which error rate was held over them.
        sightings: one a finding; None without a baseline.
        pairs: None without a baseline that has predictions.
        notes: what to know about them.
        compared_on: the samples of `pairs` with the predictions of now; None without a baseline.
    """

    tallies: tuple[Tally, ...]
    n_tested: int = 0
    correction: Correction = "fdr"
    sightings: tuple[Sighting, ...] | None = None
    pairs: tuple[PairedTally, ...] | None = None
    notes: tuple[str, ...] = field(default=())
    compared_on: AskedData | None = None

    def of(self, *kinds: SubjectKind) -> tuple[Tally, ...]:
        return tuple(one for one in self.tallies if one.kind in kinds)
