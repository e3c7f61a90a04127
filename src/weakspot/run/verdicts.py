"""Verdicts of slices, read off the ledger: what was measured goes in as questions, what may be said of it comes back."""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from weakspot.core.evidence import Evidence, Verdict
from weakspot.core.samples import SampleSet
from weakspot.core.slices import FailureSlice
from weakspot.run.halves import used_rows
from weakspot.run.ledger import BESIDE, Answer, AskedData, AskedTest, Ledger
from weakspot.run.settings import Settings
from weakspot.run.wiring import build_verifier
from weakspot.store.project import ProjectStore

ALPHA = 0.05
"""Error rate over everything that samples are asked, where the verifier has no setting for it."""
MIN_WEIGHT = 1e-6
CLASS_PART = 0.075
"""Part of what a batch may spend that is for questions about whole classes, if it asks any; slices have the rest."""
TESTED = (Verdict.CONFIRMED, Verdict.NOT_CONFIRMED)


def open_ledger(store: ProjectStore, samples: SampleSet, settings: Settings) -> Ledger:
    """Return the ledger of the samples that a project evaluates on, at the error rate of its verifier."""
    return ledger_at(store, AskedData.of(samples.dataset, used_rows(samples, settings)), settings)


def ledger_at(store: ProjectStore, data: AskedData, settings: Settings) -> Ledger:
    """Return the ledger of some samples, at the error rate of the verifier that is configured."""
    verifier = build_verifier(settings)
    return Ledger(
        store=store,
        data=data,
        alpha=float(getattr(verifier, "alpha", ALPHA)),
        correction=getattr(verifier, "correction", "fdr"),
    )


@dataclass(frozen=True, kw_only=True)
class Asking:
    """Somebody who puts questions to held-out samples.

    Args:
        ledger: of the samples.
        source: what asks, for example `verify`.
        by: who asks; empty for the command line.
        classes: questions about whole classes that are asked in the same batch; whoever gives them recalls the answers.
    """

    ledger: Ledger
    source: str
    by: str = ""
    classes: tuple[AskedTest, ...] = ()


def judged(
    folds: Sequence[Sequence[Evidence]],
    asking: Asking,
    *,
    min_gap: float,
    slices: Sequence[FailureSlice] = (),
    parts: Sequence[float] = (1.0,),
) -> tuple[tuple[Evidence, ...], ...]:
    """Return evidence with the adjusted values and verdicts that the ledger gives it.

    A slice that was confirmed before stays so, also where another one with nearly the same members is tested in its place now
    and fails.

    Args:
        folds: what the verifier measured, one sequence a fold; folds divide what the batch may spend.
        asking: who asks, and the ledger.
        min_gap: least difference of failure rates for a confirmed finding.
        slices: what the evidence is about, for their titles in the file.
        parts: how much of what the batch may spend each fold has.
    """
    ledger = asking.ledger
    names = {found.slice_id: found.title for found in slices}
    asked = [
        AskedTest(
            key=question_of(entry),
            p_value=entry.p_value if _is_wide(entry, min_gap) else 1.0,
            weight=entry.weight,
            family=number,
            about=names.get(entry.slice_id, ""),
        )
        for number, entries in enumerate(folds)
        for entry in entries
        if entry.verdict in TESTED
    ]
    beside = [one for number, fold in enumerate(folds) for one in _beside(fold, number)]
    total = max(1.0, sum(parts[number] for number in {one.family for one in asked}))
    known = ledger.recall([one.key for one in asking.classes]) if asking.classes else {}
    own_family = [
        one.model_copy(update={"family": len(parts)})
        for one in asking.classes
        if one.key not in known
    ]
    left = 1.0 - CLASS_PART if own_family else 1.0
    answers = ledger.ask(
        [*asked, *beside, *own_family],
        source=asking.source,
        by=asking.by,
        parts=[*(left * part / total for part in parts), *([CLASS_PART] if own_family else [])],
    )[: len(asked)]
    by_key = {one.key: answer for one, answer in zip(asked, answers, strict=True)}
    represented = [
        question_of(entry)
        for entries in folds
        for entry in entries
        if entry.verdict is Verdict.SAME
    ]
    return tuple(
        _with_earlier(
            [
                _judge(entry, by_key[question_of(entry)], min_gap)
                if entry.verdict in TESTED
                else entry
                for entry in entries
            ],
            ledger.recall(represented) if represented else {},
            min_gap,
        )
        for entries in folds
    )


def _beside(entries: Sequence[Evidence], family: int) -> list[AskedTest]:
    """Return, as tests that found nothing, what a fold tested beside the slices at hand: they take their part of the weight."""
    tested = [entry for entry in entries if entry.verdict in TESTED]
    n_missing = max((entry.n_tested for entry in tested), default=0) - len(tested)
    if n_missing <= 0:
        return []
    left = len(tested) + n_missing - sum(entry.weight for entry in tested)
    name = hashlib.sha256("\n".join(map(question_of, tested)).encode()).hexdigest()[:16]
    return [
        AskedTest(
            key=f"{BESIDE}{name} {number}",
            p_value=1.0,
            weight=max(left / n_missing, MIN_WEIGHT),
            family=family,
        )
        for number in range(n_missing)
    ]


def question_of(entry: Evidence) -> str:
    """Return the name of the question that a measurement answers; a verifier of a plug-in may not give one."""
    return entry.question or f"{entry.slice_id} {entry.measured_on.digest}"


def was_tested(entry: Evidence) -> bool:
    """Return whether a slice has a test of its own: of slices with nearly the same members only one has.

    A slice that was confirmed in one fold and is the same as one of another fold was tested nevertheless.
    """
    return entry.verdict in TESTED or (entry.verdict is Verdict.SAME and entry.q_value < 1.0)


def _judge(entry: Evidence, answer: Answer, min_gap: float) -> Evidence:
    is_found = answer.is_found and _is_wide(entry, min_gap)
    return entry.model_copy(
        update={
            "q_value": answer.q_value,
            "n_tested": answer.n_tested,
            "batch": answer.batch,
            "verdict": Verdict.CONFIRMED if is_found else Verdict.NOT_CONFIRMED,
        }
    )


def _with_earlier(
    entries: Sequence[Evidence], known: Mapping[str, Answer], min_gap: float
) -> tuple[Evidence, ...]:
    verdicts = {entry.slice_id: entry.verdict for entry in entries}
    return tuple(
        _judge(
            entry.model_copy(
                update={"same_as": None, "p_value": known[question_of(entry)].p_value}
            ),
            known[question_of(entry)],
            min_gap,
        )
        if entry.verdict is Verdict.SAME
        and question_of(entry) in known
        and known[question_of(entry)].is_found
        and verdicts.get(entry.same_as or "") is not Verdict.CONFIRMED
        else entry
        for entry in entries
    )


def _is_wide(entry: Evidence, min_gap: float) -> bool:
    return entry.gap > 0 and entry.gap >= min_gap
