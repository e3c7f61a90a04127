"""Whether a model may be released: a policy put to a run of a project."""

from weakspot.app.checking.baselines import baseline_of, load_baseline, write_baseline
from weakspot.app.checking.check import Checked, CheckRequest, check
from weakspot.app.checking.present import EnsuredRun, chosen_run, ensured_run

__all__ = [
    "CheckRequest",
    "Checked",
    "EnsuredRun",
    "baseline_of",
    "check",
    "chosen_run",
    "ensured_run",
    "load_baseline",
    "write_baseline",
]
