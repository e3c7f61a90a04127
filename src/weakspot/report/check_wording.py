"""What was looked at before the run, in one sentence."""

from collections.abc import Sequence

from weakspot.core.preflight import CheckState, PreflightCheck


def checks_sentence(checks: Sequence[PreflightCheck]) -> str:
    """Return what was checked and what is worth knowing; problems are told elsewhere, first of all. Empty without checks."""
    fine = [one.check for one in checks if one.state is CheckState.OK]
    notices = [one.sentence.rstrip(".") for one in checks if one.state is CheckState.NOTICE]
    parts = [f"no sign of trouble: {', '.join(fine)}"] if fine else []
    return "; ".join([*parts, *notices])
