"""What rules are put to: counts of the run, of slices, and of the same samples with the classifiers before and now."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum

import numpy as np

from weakspot.core.arrays import BoolArray, IntArray
from weakspot.core.errors import DataError
from weakspot.core.failures import Side
from weakspot.core.slices import FailureSlice
from weakspot.core.statistics import Correction
from weakspot.gate.baseline import Baseline, ClassPredictions, HeldOutPredictions
from weakspot.gate.policy import Judging
from weakspot.run.ledger import AskedData


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
        is_finding: whether it is a confirmed slice that no stronger one explains, or a class that is confirmed to fail as a whole.
    """

    subject: str
    kind: SubjectKind
    n_samples: int
    n_failed: int
    n_outside: int = 0
    failed_outside: int = 0
    slice_id: str = ""
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
        judging: how rules are judged.
        accepted: ids of slices that somebody answers for.
    """

    tallies: tuple[Tally, ...]
    n_tested: int = 0
    correction: Correction = "fdr"
    sightings: tuple[Sighting, ...] | None = None
    pairs: tuple[PairedTally, ...] | None = None
    notes: tuple[str, ...] = field(default=())
    compared_on: AskedData | None = None
    judging: Judging = field(default_factory=Judging)
    accepted: tuple[str, ...] = ()

    def of(self, *kinds: SubjectKind) -> tuple[Tally, ...]:
        return tuple(one for one in self.tallies if one.kind in kinds)


ClassKey = tuple[str, Side | None]


NamedMembers = tuple[FailureSlice, BoolArray]
"""A slice that people named, and which samples of now belong to it."""


@dataclass(frozen=True, kw_only=True, eq=False)
class _ClassPair:
    """The shared samples of one class that both classifiers have a result for; samples of the same unit belong together."""

    title: str
    units: IntArray
    is_meant: BoolArray
    right_before: BoolArray
    right_now: BoolArray


def pair_samples(
    baseline: Baseline,
    now: HeldOutPredictions,
    named: tuple[NamedMembers, ...] = (),
    groups: IntArray | None = None,
) -> tuple[tuple[PairedTally, ...], tuple[str, ...]]:
    """Compare a baseline with predictions of now on the samples that both have, and return what to know about that too.

    A slice of the baseline is measured without the samples that it was found on.

    Args:
        baseline: what the run is compared with.
        now: what the classifier says now.
        named: slices that people named.
        groups: the group of every sample of now; None if each is on its own.

    Raises:
        DataError: if the baseline holds no predictions, or no sample is in both.
    """
    before = baseline.predictions
    if before is None:
        raise DataError(
            "The baseline has no predictions of samples.",
            fix="Write one with `weakspot check --write-baseline`, or name its project.",
        )
    _, old, new = np.intersect1d(
        before.keys.keys, now.keys.keys, assume_unique=True, return_indices=True
    )
    if not len(old):
        counts = {"baseline": before.keys.count, "now": now.keys.count}
        raise DataError(
            "The baseline and the run have no sample in common, so nothing can be compared.",
            given=counts,
            fix="Use a baseline that was written with the same validation and test samples.",
        )
    units = np.arange(now.keys.count) if groups is None else groups
    classes = _class_pairs(before, now, (old, new), np.asarray(units[new], dtype=np.int64))
    notes = [
        f"{len(old)} of {now.keys.count} held-out samples are in the baseline too; only these are compared with it."
    ]
    if n_relabelled := _n_relabelled(before, now, old, new):
        notes.append(f"{n_relabelled} of them have another label now and are left out.")
    sliced = _sliced(baseline, before, classes, old)
    return (*_whole(classes), *sliced, *_named(named, classes, new)), tuple(notes)


def _class_pairs(
    before: HeldOutPredictions,
    now: HeldOutPredictions,
    shared: tuple[IntArray, IntArray],
    units: IntArray,
) -> Mapping[ClassKey, _ClassPair]:
    old, new = shared
    later = {_key(one): one for one in now.classes}
    found: dict[ClassKey, _ClassPair] = {}
    for one in before.classes:
        other = later.get(_key(one))
        if other is not None:
            found[_key(one)] = _ClassPair(
                title=one.title,
                units=units,
                is_meant=one.members.bits[old] & other.members.bits[new],
                right_before=~one.failed.bits[old],
                right_now=~other.failed.bits[new],
            )
    return found


def _whole(classes: Mapping[ClassKey, _ClassPair]) -> Iterator[PairedTally]:
    own = [_tally(one, one.is_meant, one.title, SubjectKind.CLASS) for one in classes.values()]
    counted = ("n_samples", "right_before", "right_now", "gained", "lost")
    sums = {name: sum(getattr(one, name) for one in own) for name in counted}
    units, nets = _net_losses(
        np.concatenate([_codes(one.units) for one in own] or [_codes(None)]),
        np.concatenate([_codes(one.nets) for one in own] or [_codes(None)]),
    )
    yield PairedTally(
        subject="overall",
        kind=SubjectKind.OVERALL,
        units=units,
        nets=nets,
        **sums,
    )
    yield from own


def _sliced(
    baseline: Baseline,
    before: HeldOutPredictions,
    classes: Mapping[ClassKey, _ClassPair],
    old: IntArray,
) -> Iterator[PairedTally]:
    for found, _ in baseline.run.published():
        own, members = (
            classes.get((found.class_name, found.side)),
            before.slice_members.get(found.slice_id),
        )
        seen = before.discovery.get(found.found_on.digest)
        if own is not None and members is not None:
            unseen = np.ones(len(old), dtype=np.bool_) if seen is None else ~seen.bits[old]
            chosen = own.is_meant & members.bits[old] & unseen
            yield _tally(own, chosen, found.title, SubjectKind.SLICE, slice_id=found.slice_id)


def _named(
    named: tuple[NamedMembers, ...], classes: Mapping[ClassKey, _ClassPair], new: IntArray
) -> Iterator[PairedTally]:
    for found, members in named:
        own = classes.get((found.class_name, found.side))
        if own is not None:
            chosen = own.is_meant & members[new]
            yield _tally(own, chosen, found.names[0].contrast, SubjectKind.NAMED)


def _tally(
    own: _ClassPair, chosen: BoolArray, subject: str, kind: SubjectKind, *, slice_id: str = ""
) -> PairedTally:
    before, now = own.right_before[chosen], own.right_now[chosen]
    units, nets = _net_losses(own.units[chosen], before.astype(np.int64) - now.astype(np.int64))
    return PairedTally(
        subject=subject,
        kind=kind,
        n_samples=int(chosen.sum()),
        right_before=int(before.sum()),
        right_now=int(now.sum()),
        gained=int((~before & now).sum()),
        lost=int((before & ~now).sum()),
        slice_id=slice_id,
        units=units,
        nets=nets,
    )


def _net_losses(units: IntArray, changes: IntArray) -> tuple[IntArray, IntArray]:
    """Return the units in which more samples were lost than gained, or fewer, and by how many."""
    is_changed = changes != 0
    codes, places = np.unique(units[is_changed], return_inverse=True)
    nets = np.zeros(len(codes), dtype=np.int64)
    np.add.at(nets, places, changes[is_changed])
    return codes[nets != 0], nets[nets != 0]


def _codes(given: IntArray | None) -> IntArray:
    return np.zeros(0, dtype=np.int64) if given is None else given


def _n_relabelled(
    before: HeldOutPredictions, now: HeldOutPredictions, old: IntArray, new: IntArray
) -> int:
    later = {_key(one): one.members.bits[new] for one in now.classes}
    nobody = np.zeros(len(old), dtype=np.bool_)
    differs, known_before, known_now = nobody.copy(), nobody.copy(), nobody.copy()
    for one in before.classes:
        members, others = one.members.bits[old], later.get(_key(one), nobody)
        differs |= members != others
        known_before |= members
        known_now |= others
    return int((differs & known_before & known_now).sum())


def _key(one: ClassPredictions) -> ClassKey:
    return one.class_name, one.side
