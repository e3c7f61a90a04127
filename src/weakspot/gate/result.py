"""What became of a policy: one entry a rule and subject, with figures, verdict and a sentence."""

from enum import StrEnum

from weakspot.core.evidence import Interval
from weakspot.core.record import Record

PREDICTION_VERSION = 1


class Ruling(StrEnum):
    """What can be said of one rule and one subject."""

    KEPT = "kept"
    VIOLATED = "violated"
    NOT_JUDGED = "not judged"
    ACCEPTED = "accepted"


class PolicyEntry(Record):
    """One rule put to one subject.

    Args:
        rule: its key in the policy.
        subject: `overall`, a class, or a slice by title or name.
        slice_id: of a slice of the run or of the baseline; empty otherwise.
        verdict: kept, violated, not judged, or violated but accepted.
        value: what was measured; None if nothing was.
        interval: of the value, holding for all subjects of the rule at once; None where there is none.
        bar: what the value is held against.
        n_samples: how many samples it was measured on.
        before: the baseline's accuracy on the same samples, for regressions.
        after: the accuracy now on the same samples, for regressions.
        p_value: of a regression: one-sided, that accuracy fell by no more than is let pass, adjusted for all that were tested with it.
        detectable: of a regression: the smallest fall that would be flagged in four of five cases on these samples; None if none would.
        sentence: all of this in words.
    """

    rule: str
    subject: str
    slice_id: str = ""
    verdict: Ruling
    value: float | None = None
    interval: Interval | None = None
    bar: float | None = None
    n_samples: int | None = None
    before: float | None = None
    after: float | None = None
    p_value: float | None = None
    detectable: float | None = None
    sentence: str


class PolicyResult(Record):
    """What became of all rules of a policy.

    Args:
        run_id: the run that was judged.
        started: when that run started, ISO 8601.
        classifier_id: the classifier of that run; empty when predictions were given.
        baseline_run_id: the run it was compared with; empty without a baseline.
        policy: the policy file, as seen from where the check was started.
        level: confidence with which intervals hold.
        unsure_fails: whether entries that are not judged count as violations.
        entries: in the order of the rules.
        notes: what to know about the comparison.
        record_version: version of this layout.
    """

    run_id: str
    started: str = ""
    classifier_id: str = ""
    baseline_run_id: str = ""
    policy: str = ""
    level: float = 0.95
    unsure_fails: bool = False
    entries: tuple[PolicyEntry, ...] = ()
    notes: tuple[str, ...] = ()
    record_version: int = PREDICTION_VERSION

    def of(self, *verdicts: Ruling) -> tuple[PolicyEntry, ...]:
        return tuple(entry for entry in self.entries if entry.verdict in verdicts)

    @property
    def failing(self) -> tuple[PolicyEntry, ...]:
        return (
            self.of(Ruling.VIOLATED, Ruling.NOT_JUDGED)
            if self.unsure_fails
            else self.of(Ruling.VIOLATED)
        )

    @property
    def is_kept(self) -> bool:
        return not self.failing

    @property
    def exit_code(self) -> int:
        """Return 0 if the policy is kept, 1 if not."""
        return 0 if self.is_kept else 1

    @property
    def headline(self) -> str:
        """Return the verdict in one sentence."""
        n_judged, n_failing = len(self.entries) - len(self.of(Ruling.NOT_JUDGED)), len(self.failing)
        if self.is_kept:
            left = [
                f"{len(self.of(one))} {one.value}"
                for one in (Ruling.ACCEPTED, Ruling.NOT_JUDGED)
                if self.of(one)
            ]
            return f"The policy is kept: {n_judged} checks judged{''.join(f', {part}' for part in left)}."
        unsure = (
            " (what is not judged counts)"
            if self.unsure_fails and self.of(Ruling.NOT_JUDGED)
            else ""
        )
        return f"The policy is violated: {n_failing} of {len(self.entries)} checks{unsure}."
