"""The table of a sweep: one repair at several settings, and the point that the held-out half speaks for."""

from weakspot.core.record import Record
from weakspot.core.repairs import GroupChange

MAX_LOSS = 0.01


class SweepPoint(Record):
    """A synthetic repair at one setting.

    Args:
        debug_weight: how much generated samples count beside training samples, the paper's lambda.
        n_names: how many names of a class are used, the paper's k.
        n_synthetic: generated samples that were used.
        held_out: name of the held-out samples, None if nothing was measured on them.
        held_out_wrong: failures that nothing was chosen by, and how many of them are resolved.
        held_out_overall: all held-out samples before and after.
        test_wrong: failures of the test split.
        test_overall: all samples of the test split before and after.
    """

    debug_weight: float
    n_names: int
    n_synthetic: int
    held_out: str | None = None
    held_out_wrong: GroupChange | None = None
    held_out_overall: GroupChange | None = None
    test_wrong: GroupChange | None = None
    test_overall: GroupChange | None = None

    @property
    def resolved(self) -> float:
        """Return the share of held-out failures that are resolved; NaN if it was not measured."""
        return float("nan") if self.held_out_wrong is None else self.held_out_wrong.accuracy_after

    @property
    def test_accuracy(self) -> float:
        """Return the accuracy on the test split; NaN if it was not measured."""
        return float("nan") if self.test_overall is None else self.test_overall.accuracy_after


class SweepTable(Record):
    """A synthetic repair at several settings.

    Args:
        points: in the order of names, then of weights.
        measured_on: name of the samples that the test figures are from.
        notes: why some settings could not be tried.
    """

    points: tuple[SweepPoint, ...]
    measured_on: str = "test samples"
    notes: tuple[str, ...] = ()

    @property
    def chosen(self) -> SweepPoint | None:
        """Return the point that resolves most held-out failures while held-out accuracy falls by at most one point.

        Equals are decided for the smaller weight, then for fewer names. If all of them lose more, it is the one that loses least.
        The test split has no say. None if nothing was measured on held-out samples.
        """
        known = [(point, point.held_out_overall.change) for point in self.points if point.held_out_overall and point.held_out_wrong]
        careful = [point for point, change in known if change >= -MAX_LOSS - 1e-9]
        if careful:
            return min(careful, key=lambda point: (-point.resolved, point.debug_weight, point.n_names))
        return max(known, key=lambda one: one[1])[0] if known else None

    def with_measured(self, *, test: str) -> "SweepTable":
        """Return the same table, saying what the test figures are from."""
        return self.model_copy(update={"measured_on": test})
