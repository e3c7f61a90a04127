"""Checks in the ledger: a comparison with a baseline is written down and counted, and promises for itself alone."""

import hashlib
import json
from collections.abc import Sequence

from weakspot.core.errors import StoreError
from weakspot.pipeline.asked_data import AskedData
from weakspot.pipeline.ledger import AskedTest
from weakspot.pipeline.verdicts import ledger_at
from weakspot.project.project import Project
from weakspot.release.bars import percent
from weakspot.release.baseline import Baseline
from weakspot.release.policy import Policy
from weakspot.release.result import PolicyEntry

RULE = "regressions"
MANY_CHECKS = 10


def note_check(
    project: Project,
    data: AskedData,
    baseline: Baseline,
    policy: Policy,
    entries: Sequence[PolicyEntry],
) -> str:
    """Enter the comparisons of a check in the ledger of the samples, and return in words what is promised of which.

    Args:
        project: the project.
        data: the samples that were compared, with the predictions of now.
        baseline: with the predictions before.
        policy: the rules.
        entries: what became of the policy.
    """
    tests = _tests(data, baseline, policy, entries)
    if not tests:
        return ""
    try:
        n_checks = ledger_at(project.store, data, project.settings).note(tests, source="check")
    except (StoreError, OSError) as error:
        return f"This check could not be entered in the ledger, so it is not counted: {error}"
    return promise(n_checks, 1.0 - policy.judging.level)


def promise(n_checks: int, alpha: float) -> str:
    """Return what a check promises by itself, what is promised over everything, and how often it was done on these samples.

    >>> promise(1, 0.05).split(". ")[0]
    'This is the first model that these samples compare with a baseline'
    """
    counted = (
        "This is the first model that these samples compare with a baseline."
        if n_checks == 1
        else f"These samples have compared {n_checks:,} pairs of a model and a baseline by now."
    )
    expected = (
        f", so about {alpha * n_checks:.0f} in {n_checks:,} if nothing ever fell"
        if n_checks >= MANY_CHECKS
        else ""
    )
    return (
        f"{counted} Falls: each check has a chance of at most {percent(alpha)} of any false alarm{expected}; that is promised for "
        "each check, not for all of them together. Confirmed slices: that holds over everything these samples were asked about this model."
    )


def _tests(
    data: AskedData, baseline: Baseline, policy: Policy, entries: Sequence[PolicyEntry]
) -> list[AskedTest]:
    before = "" if baseline.predictions is None else baseline.predictions.model_dump_json()
    drop = 0.0 if policy.regressions is None else policy.regressions.max_drop
    pair = hashlib.sha256(f"{data.digest}\n{before}".encode()).hexdigest()
    return [
        AskedTest(
            key="fall "
            + hashlib.sha256(
                json.dumps([pair, entry.subject, entry.slice_id, entry.n_samples, drop]).encode()
            ).hexdigest()[:24],
            p_value=entry.p_value,
            about=f"fall: {entry.subject}",
        )
        for entry in entries
        if entry.rule == RULE and entry.p_value is not None
    ]
