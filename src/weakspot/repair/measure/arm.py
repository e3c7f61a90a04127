"""One arm, measured on the samples that decide and on the halves that slices were found and confirmed on."""

from collections.abc import Sequence

from weakspot.core.arrays import IntArray
from weakspot.core.errors import DataError
from weakspot.core.failures import FailureCriterion
from weakspot.core.repairs import ArmMeasurement, RepairArm
from weakspot.core.samples import SampleSet
from weakspot.core.slices import DataUse, FailureSlice
from weakspot.core.statistics import calibration_error
from weakspot.repair.measure.answers import ArmAnswers, Elsewhere, check_probabilities
from weakspot.repair.measure.changes import group_changes, names_of_fallen
from weakspot.repair.measure.groups import given_groups, own_groups
from weakspot.repair.measure.outcomes import Comparison, compare, is_measurable, refuse_outcome_rules
from weakspot.repair.measure.spread import spread_of

LEAST_GROUP = 5


def measure_arm(  # noqa: PLR0913 - what is measured, what it is measured on, and how
    answers: ArmAnswers,
    slices: Sequence[FailureSlice],
    samples: SampleSet,
    criterion: FailureCriterion,
    *,
    elsewhere: Sequence[Elsewhere] = (),
    groups: IntArray | None = None,
    least_group: int = LEAST_GROUP,
    seed: int = 0,
) -> RepairArm:
    """Compare the classifier's own outcomes with those of one arm on the same samples.

    Args:
        answers: what the arm says of the samples.
        slices: the slices that were repaired.
        samples: what decides; take what `untouched` gives.
        criterion: what counts as a failure.
        elsewhere: the same on further sets; samples without a label or a known outcome are left out there.
        groups: [n] number of every sample's group, -1 for none, if worst, average and gap are to be taken over given groups in
            place of slices, the rest of their classes and all other classes.
        least_group: groups with fewer samples are left out of worst, average and gap: the smaller a group, the more its accuracy
            is chance, and the worst of many is the unluckiest one.
        seed: the only source of chance.

    Raises:
        DataError: if answers and samples do not belong together, or a slice is defined by outcomes.
    """
    check_probabilities(answers.probabilities, samples)
    refuse_outcome_rules(slices)
    if not is_measurable(samples).all():
        raise DataError(
            "Some measured samples have no label, or no prediction before.",
            where=samples.name,
            fix="Take what weakspot.repair.measure.untouched gives.",
        )
    comparison = compare(samples, answers.probabilities, slices, criterion, answers.thresholds)
    chosen = own_groups(comparison) if groups is None else given_groups(comparison, groups)
    changes = group_changes(comparison, with_classes=True)
    before, after = _calibration(comparison)
    return RepairArm(
        arm=answers.arm,
        is_baseline=answers.is_baseline,
        note=answers.note,
        n_trained=answers.n_trained,
        changes=changes,
        got_worse=names_of_fallen(changes),
        n_added=answers.n_added,
        n_synthetic=answers.n_synthetic,
        spread=spread_of(chosen.at_least(least_group), len(samples), seed=seed),
        elsewhere=tuple(_measured(one, answers, slices, criterion) for one in elsewhere),
        temperature=answers.temperature,
        calibration_before=before,
        calibration_after=after,
    )


def _measured(one: Elsewhere, answers: ArmAnswers, slices: Sequence[FailureSlice], criterion: FailureCriterion) -> ArmMeasurement:
    if len(one.probabilities) != len(one.samples):
        check_probabilities(one.probabilities, one.samples)
    known = is_measurable(one.samples)
    samples, probabilities = one.samples.only(one.samples.rows[known]), one.probabilities[known]
    check_probabilities(probabilities, samples)
    comparison = compare(samples, probabilities, slices, criterion, answers.thresholds)
    return ArmMeasurement(measured_on=DataUse.of(samples), changes=group_changes(comparison, with_classes=False))


def _calibration(comparison: Comparison) -> tuple[float | None, float | None]:
    """Return the calibration errors before and after; nothing if there were no probabilities before."""
    before, after = comparison.before.probabilities, comparison.after.probabilities
    if before is None or after is None or not len(before):
        return None, None
    task = comparison.before.task
    return (
        calibration_error(before, comparison.targets, task=task),
        calibration_error(after, comparison.targets, task=task),
    )
