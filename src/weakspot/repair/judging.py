"""Repairs in the ledger of the samples that measure them: whoever repairs again and again asks the same test samples again and again."""

from collections.abc import Iterator, Sequence

from weakspot.core.repairs import GroupChange, GroupKind, RepairArm, RepairResult
from weakspot.core.samples import SampleSet
from weakspot.pipeline.asked_data import AskedData
from weakspot.pipeline.ledger import Answer, AskedTest, Ledger
from weakspot.store.project import ProjectStore

ASKED = (GroupKind.OVERALL, GroupKind.SLICE, GroupKind.COMPLEMENT)
"""Groups with questions of their own; classes, of which there may be thousands, are judged at the level of their repair."""
FORMER = (GroupKind.FORMERLY_RIGHT, GroupKind.FORMERLY_WRONG)
Family = tuple[GroupKind, str, bool]


def repair_ledger(store: ProjectStore, measured: SampleSet) -> Ledger:
    """Return the ledger of the samples that repairs are measured on: the chance of any false change is held for every group."""
    return Ledger(
        store=store, data=AskedData.of(measured.dataset, measured.rows), correction="fwer"
    )


def judged_repairs(results: Sequence[RepairResult], ledger: Ledger) -> tuple[RepairResult, ...]:
    """Return results whose changes say how likely they are by chance, over everything that was ever measured on these samples.

    For every group, repairs are corrected together, and so are baselines: neither pays for the other.
    """
    asked = [one for result in results for arm in result.arms for one in _ask(arm)]
    families = {family: number for number, family in enumerate(dict.fromkeys(f for f, _ in asked))}
    tests = [
        AskedTest(
            key=_key(change, family),
            p_value=change.p_value,
            family=families[family],
            about=f"{'baseline' if family[2] else 'repair'}: {change.group}",
        )
        for family, change in asked
    ]
    answers = ledger.ask(tests, source="repair", parts=()) if tests else ()
    said = {test.key: answer for test, answer in zip(tests, answers, strict=True)}
    judged = tuple(
        result.model_copy(update={"arms": tuple(_judge(arm, said) for arm in result.arms)})
        for result in results
    )
    if not tests:
        return judged
    notes = (*judged[0].notes, ledger.standing().sentence)
    return (judged[0].model_copy(update={"notes": notes}), *judged[1:])


def _ask(arm: RepairArm) -> Iterator[tuple[Family, GroupChange]]:
    for change in arm.changes:
        if change.kind in ASKED and change.n_samples and change.question:
            yield (change.kind, change.group, arm.is_baseline), change


def _key(change: GroupChange, family: Family) -> str:
    return f"{change.question}{' baseline' if family[2] else ''}"


def _judge(arm: RepairArm, said: dict[str, Answer]) -> RepairArm:
    own = {change.group: said[_key(change, family)] for family, change in _ask(arm)}
    if not own:
        return arm
    level = next(iter(own.values()))
    changes = tuple(
        change
        if change.kind in FORMER or not change.n_samples
        else change.model_copy(update={"q_value": _q_value(change, own.get(change.group), level)})
        for change in arm.changes
    )
    return arm.model_copy(update={"changes": changes})


def _q_value(change: GroupChange, answer: Answer | None, level: Answer) -> float:
    if change.kind in ASKED and answer is not None:
        return answer.q_value
    return min(1.0, change.p_value * level.n_tested / level.share)
