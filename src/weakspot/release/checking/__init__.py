"""Whether a model may be released: a policy put to a run of a project."""

from weakspot.release.checking.check import Checked, CheckRequest, check
from weakspot.release.checking.runs import (
    EnsuredRun,
    baseline_of,
    choose_run,
    ensure_run,
    load_baseline,
    write_baseline,
)

__all__ = [
    "CheckRequest",
    "Checked",
    "EnsuredRun",
    "baseline_of",
    "check",
    "choose_run",
    "ensure_run",
    "load_baseline",
    "write_baseline",
]
