"""What to change, and what changing it did."""

from enum import StrEnum
from typing import Literal

from pydantic import Field, JsonValue

from weakspot.core.evidence import GivenGroups, Interval, Spread
from weakspot.core.record import Record
from weakspot.core.slices import DataUse, FailureSlice
from weakspot.core.statistics import change_interval

Solver = Literal["exact", "sgd"]


class RepairPlan(Record):
    """What is going to be changed.

    Args:
        slice_ids: the slices to repair.
        repairer: registered name of the strategy.
        parameters: what the strategy is set to.
        budget: how many samples may be taken from a pool, 0 for none.
        seed: seed of the run.
        trained_on: the data that is trained on.
        penalty: weight decay of the retrained layer; None: the one that fits the classifier's own layer best.
        solver: how the layer is trained.
        is_exploratory: whether a slice among them was not confirmed: then the repair shows what retraining for it does, and no more.
        is_tuned: whether every arm got the penalty that is best on validation samples.
        slices: the slices themselves, so that the plan can be carried out elsewhere; empty in run records, which hold them.
    """

    slice_ids: tuple[str, ...]
    repairer: str
    parameters: dict[str, JsonValue] = Field(default_factory=dict)
    budget: int = 0
    seed: int = 0
    trained_on: DataUse | None = None
    penalty: float | None = None
    solver: Solver = "exact"
    is_tuned: bool = False
    is_exploratory: bool = False
    slices: tuple[FailureSlice, ...] = ()


class GroupKind(StrEnum):
    """What a group of a before/after table is."""

    OVERALL = "overall"
    SLICE = "slice"
    COMPLEMENT = "rest of the class"
    CLASS = "class"
    FORMERLY_RIGHT = "formerly right"
    FORMERLY_WRONG = "formerly wrong"


class GroupChange(Record):
    """Accuracy of one group before and after.

    Args:
        group: its name.
        kind: what it is.
        n_samples: its size.
        right_before: how many were right before.
        right_after: how many are right after.
        gained: wrong before, right after.
        lost: right before, wrong after.
        interval_before: interval of the accuracy before.
        interval_after: interval of the accuracy after.
        p_value: McNemar's exact test of gained against lost, or the exact test of groups where several samples belong together.
        n_groups: how many groups its samples form, None if every sample is on its own.
        interval_of_groups: interval of the change that counts groups, None if every sample is on its own.
        q_value: the same over everything that was ever measured on these samples; None if that was not counted.
        question: names what was measured, for the ledger; empty where it is not asked.
    """

    group: str
    kind: GroupKind
    n_samples: int
    right_before: int
    right_after: int
    gained: int
    lost: int
    interval_before: Interval
    interval_after: Interval
    p_value: float
    n_groups: int | None = None
    interval_of_groups: Interval | None = None

    @property
    def interval_of_change(self) -> Interval:
        """Return the interval of the change of accuracy."""
        if self.interval_of_groups is not None:
            return self.interval_of_groups
        low, high = change_interval(self.gained, self.lost, self.n_samples)
        return Interval(low=low, high=high)

    q_value: float | None = None
    question: str = ""

    @property
    def chance(self) -> float:
        """Return the p-value to be told: the one over everything that was ever measured, where that was counted."""
        return self.p_value if self.q_value is None else self.q_value

    @property
    def accuracy_before(self) -> float:
        """Return the share that was right before."""
        return self.right_before / self.n_samples if self.n_samples else float("nan")

    @property
    def accuracy_after(self) -> float:
        """Return the share that is right after."""
        return self.right_after / self.n_samples if self.n_samples else float("nan")

    @property
    def change(self) -> float:
        """Return the change of accuracy; larger is better."""
        return self.accuracy_after - self.accuracy_before


class ArmMeasurement(Record):
    """One way of retraining on other data than the decisive one, for example on the samples that slices were found on.

    Args:
        measured_on: the data.
        changes: one entry a group.
    """

    measured_on: DataUse
    changes: tuple[GroupChange, ...]


class RepairArm(Record):
    """One way of retraining, measured on all groups.

    Args:
        arm: registered name of the strategy, or of the baseline.
        is_baseline: whether it only stands there for comparison.
        note: what was done, in a sentence.
        n_trained: samples trained on.
        changes: one entry a group, on data that nothing was trained, thresholded or chosen on.
        got_worse: names of groups whose accuracy fell.
        n_added: samples among them that came from the pool.
        n_synthetic: generated samples among them.
        spread: how even it became, None if there are fewer than two groups.
        elsewhere: the same on the discovery and confirmation halves: seed and held-out failures.
        temperature: what logits were divided by to calibrate them, None if they were not.
        calibration_before: expected calibration error of the classifier on the measured samples, None without probabilities.
        calibration_after: the same after.
        is_reference: whether it answers with another model instead of retraining; it stands there to be seen, not to be beaten.
        given: worst, average and gap over the groups that `[repair] groups` names; None if it names none.
    """

    arm: str
    is_baseline: bool
    note: str
    n_trained: int
    changes: tuple[GroupChange, ...]
    got_worse: tuple[str, ...] = ()
    n_added: int = 0
    n_synthetic: int = 0
    spread: Spread | None = None
    elsewhere: tuple[ArmMeasurement, ...] = ()
    temperature: float | None = None
    calibration_before: float | None = None
    calibration_after: float | None = None
    is_reference: bool = False
    given: GivenGroups | None = None

    def change_of(self, kind: GroupKind, group: str | None = None) -> GroupChange | None:
        """Return the first change of a kind (and name), None if there is none."""
        return next(
            (one for one in self.changes if one.kind is kind and group in (None, one.group)), None
        )


class SliceStatus(StrEnum):
    """What became of a slice when failures were looked for again after a repair."""

    GONE = "gone"
    SMALLER = "smaller"
    STAYS = "stays"
    NEW = "new"


class SliceAfter(Record):
    """One slice after the repair.

    Args:
        title: its name.
        slice_id: which slice.
        status: what became of it.
        failures_before: failures among its members on the confirmation samples, before.
        failures_after: the same after.
        n_members: members among the confirmation samples.
        q_value: of the test that members still fail more often than the rest of the class; None if it was not tested.
    """

    title: str
    slice_id: str
    status: SliceStatus
    failures_before: int
    failures_after: int
    n_members: int
    q_value: float | None = None


class Aftermath(Record):
    """Failures looked for again after a repair, in the same way and on the same halves as before.

    Args:
        measured_on: the confirmation samples.
        slices: the repaired slices, then confirmed ones that were not there before.
        n_tested: how many slices were tested.
        note: what to know about it.
    """

    measured_on: DataUse
    slices: tuple[SliceAfter, ...]
    n_tested: int = 0
    note: str = ""


class LabellingRequest(Record):
    """Samples of an unlabelled pool that a repair waits for.

    Args:
        file: CSV list of the samples, relative to the run's folder.
        image_list: the same as a plain list of images.
        n_samples: how many.
        n_labelled: how many of them have come back with a label.
    """

    file: str
    image_list: str
    n_samples: int
    n_labelled: int = 0


class GainEstimate(Record):
    """How many further training rows a slice may need to fail less often; an estimate, never measured.

    Args:
        gain: how much the failure rate of the slice is to fall.
        n_rows: rows to add.
    """

    gain: float
    n_rows: int


class SliceNeed(Record):
    """What a slice lacks, counted, and what more rows of its kind may do, estimated.

    Args:
        slice_id: the slice.
        title: its name.
        rate_inside: failure rate inside, measured.
        rate_outside: failure rate of the rest of the class, measured.
        n_inside: evaluation samples of the class inside.
        n_outside: evaluation samples of the class outside.
        n_evaluation: evaluation samples of all classes.
        n_training: training samples of the class inside; None if there are no training samples.
        n_class_training: training samples of the class.
        n_pool: pool samples that the rule fits and whose class is right or not known.
        n_pool_labelled: those of them that are labelled with the class.
        n_to_match: rows to add so that members have the share among training samples that they have in evaluation; None without
            training samples.
        exponent: of the curve that estimates are read off: failures fall with this power of the number of training rows; None if
            there is none.
        n_kinds: kinds of samples of the class that the curve goes through.
        estimates: rows to add for some gains.
        why_no_estimate: why there are none; empty if there are some.
    """

    slice_id: str
    title: str
    rate_inside: float
    rate_outside: float
    n_inside: int
    n_outside: int
    n_evaluation: int
    n_training: int | None = None
    n_class_training: int = 0
    n_pool: int = 0
    n_pool_labelled: int = 0
    n_to_match: int | None = None
    exponent: float | None = None
    n_kinds: int = 0
    estimates: tuple[GainEstimate, ...] = ()
    why_no_estimate: str = ""

    @property
    def largest_gain(self) -> float:
        """Return by how much the failure rate over all samples would fall if members failed as seldom as the rest of their class."""
        fewer = self.n_inside * (self.rate_inside - self.rate_outside)
        return max(0.0, fewer / self.n_evaluation) if self.n_evaluation else 0.0


class RepairResult(Record):
    """What a repair did, beside its baselines.

    Args:
        plan: what was meant to be changed.
        measured_on: data that nothing was trained, thresholded or chosen on.
        arms: the repair first, then baselines; empty while labels are awaited.
        head_file: the repaired last layer, relative to the run's folder; None if it was not kept.
        aftermath: failures looked for again afterwards, None if that was not done.
        labelling: samples whose labels are awaited, None if none are.
        files: everything that was written for the user, relative to the run's folder.
        notes: what could not be done, and why.
        needs: what every slice lacks, where the last layer cannot be retrained here and rows are to be collected instead.
    """

    plan: RepairPlan
    measured_on: DataUse
    arms: tuple[RepairArm, ...]
    head_file: str | None = None
    aftermath: Aftermath | None = None
    labelling: LabellingRequest | None = None
    files: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    needs: tuple[SliceNeed, ...] = ()

    @property
    def repaired(self) -> RepairArm:
        return next(arm for arm in self.arms if not arm.is_baseline)

    def change_of_slice(self, slice_id: str) -> GroupChange | None:
        """Return what was measured of a slice: changes are in the order of the plan, and titles change or occur twice."""
        arm = next((one for one in self.arms if not one.is_baseline), next(iter(self.arms), None))
        changes = [one for one in arm.changes if one.kind is GroupKind.SLICE] if arm else []
        return dict(zip(self.plan.slice_ids, changes, strict=False)).get(slice_id)
