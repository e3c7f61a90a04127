"""What was looked at before a run, in one line."""

from collections.abc import Sequence

from weakspot.core.preflight import CheckState, PreflightCheck

LOOKED_FOR = {
    "class order": "wrong class order",
    "preprocessing": "wrong preprocessing",
    "leaks": "leaks",
}
"""What the absence of a sign is told of; of the other checks only what stands out is told."""


def checks_sentence(checks: Sequence[PreflightCheck]) -> str:
    """Return all checks in one line: problems, then what was looked for in vain, then what is worth knowing; empty without checks.

    >>> fine = PreflightCheck(check="class order", state=CheckState.OK, sentence="No other order fits better.")
    >>> files = PreflightCheck(check="files", state=CheckState.NOTICE, sentence="3 of 90 ...", short="3 files set aside")
    >>> checks_sentence([fine, files])
    'no sign of wrong class order; 3 files set aside'
    """
    if not checks:
        return ""
    problems = [_short(check) for check in checks if check.state is CheckState.PROBLEM]
    notices = [_short(check) for check in checks if check.state is CheckState.NOTICE]
    absent = [
        LOOKED_FOR[check.check]
        for check in checks
        if check.state is CheckState.OK and check.check in LOOKED_FOR
    ]
    said = [f"PROBLEM: {short}" for short in problems]
    said += [f"no sign of {', '.join(absent)}".replace(", wrong ", ", ")] if absent else []
    return "; ".join([*said, *notices]) or "nothing stands out"


def _short(check: PreflightCheck) -> str:
    return check.short or check.check
