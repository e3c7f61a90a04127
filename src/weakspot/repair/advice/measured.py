"""What repairs of a run were measured to do for a kind of image."""

from dataclasses import dataclass

from weakspot.core.evidence import Interval
from weakspot.core.repairs import GroupChange, GroupKind, RepairPlan, RepairResult
from weakspot.core.run import RunRecord
from weakspot.repair.advice.kinds import ImageKind

CERTAIN = 0.05


@dataclass(frozen=True, kw_only=True)
class MeasuredRepair:
    """The best repair of a kind so far, baselines and other models left out.

    Args:
        plan: what was done.
        change: what it did for the kind, on test samples.
        n_added: pool and generated samples that it trained on.
        elsewhere: change of accuracy over all test samples.
    """

    plan: RepairPlan
    change: GroupChange
    n_added: int
    elsewhere: float

    @property
    def interval(self) -> Interval:
        return self.change.interval_of_change

    @property
    def helps(self) -> bool:
        return self.change.change > 0 and self.change.chance <= CERTAIN


def best_repair(record: RunRecord, kind: ImageKind) -> MeasuredRepair | None:
    """Return the repair that did most for a kind; None if none was measured on it."""
    found = [
        one
        for result in record.repairs
        if (one := _measured(result, kind)) is not None and one.change.n_samples
    ]
    return max(found, key=lambda one: (one.helps, one.change.change), default=None)


def _measured(result: RepairResult, kind: ImageKind) -> MeasuredRepair | None:
    if not result.arms or all(arm.is_baseline for arm in result.arms):
        return None
    arm = result.repaired
    change = (
        arm.change_of(GroupKind.CLASS, kind.title)
        if kind.slice_ is None
        else result.change_of_slice(kind.subject)
    )
    overall = arm.change_of(GroupKind.OVERALL)
    if change is None:
        return None
    return MeasuredRepair(
        plan=result.plan,
        change=change,
        n_added=arm.n_added + arm.n_synthetic,
        elsewhere=overall.change if overall is not None else 0.0,
    )
