"""The facts of a run, ordered and worded; what a page, a Markdown file and a JSON file show alike."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from pydantic import JsonValue

from weakspot.core.repairs import GroupChange, GroupKind, RepairArm, RepairOutcome
from weakspot.core.run import MethodRecord, RunRecord
from weakspot.report import wording
from weakspot.report.findings import Finding, TestedSlice, count_sentence, finding, methods_of, unconfirmed_slices
from weakspot.report.pictures import SlicePictures

_SECRET = re.compile(r"token|secret|password|passwd|api_?key|authorization|credential", re.IGNORECASE)
_ADDRESS_WITH_PASSWORD = re.compile(r"(?<=://)[^/@\s]+@")


@dataclass(frozen=True, kw_only=True)
class RepairRow:
    """One group in the table of a repair: before, and after for every arm."""

    group: str
    kind: GroupKind
    before: GroupChange
    after: tuple[GroupChange, ...]


@dataclass(frozen=True, kw_only=True)
class RepairSection:
    """One repair beside its baselines.

    Args:
        sentences: what it did, in words.
        arms: the repair first.
        rows: overall, then slices and what surrounds them, then classes that changed.
        n_unchanged: classes that are not listed because nothing changed in them.
        measured_on: the data.
        got_worse: groups whose accuracy fell with the repair.
    """

    sentences: tuple[str, ...]
    arms: tuple[RepairArm, ...]
    rows: tuple[RepairRow, ...]
    n_unchanged: int
    measured_on: str
    got_worse: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class ReportDocument:
    """Everything a report says, in the order it is said."""

    headline: str
    summary: tuple[str, ...]
    findings: tuple[Finding, ...]
    not_confirmed: tuple[TestedSlice, ...]
    repairs: tuple[RepairSection, ...]
    methods: tuple[MethodRecord, ...]
    control: str
    record: RunRecord
    settings: tuple[tuple[str, str], ...] = field(default=())


def build_document(record: RunRecord, pictures: Mapping[str, SlicePictures] | None = None) -> ReportDocument:
    """Order and word the facts of a run; pictures are given by slice id."""
    shown = pictures or {}
    findings = tuple(
        finding(number, found, evidence, record, shown.get(found.slice_id, SlicePictures()))
        for number, (found, evidence) in enumerate(record.published(), start=1)
    )
    return ReportDocument(
        headline=_headline(findings, record),
        summary=tuple(_summary(record, findings)),
        findings=findings,
        not_confirmed=unconfirmed_slices(record),
        repairs=tuple(_repair(outcome) for outcome in record.repairs),
        methods=methods_of(record),
        control=wording.CONTROL_WORDS[record.evidence[0].control] if record.evidence else "",
        record=record,
        settings=tuple(_flat(record.settings)),
    )


def _headline(findings: Sequence[Finding], record: RunRecord) -> str:
    if findings:
        return findings[0].sentence
    if not record.evidence:
        return "No slice was found to test: nothing systematic could be said of any class."
    return f"No systematic failure was confirmed among {wording.count(len(record.evidence), 'slice')} found."


def _summary(record: RunRecord, findings: Sequence[Finding]) -> Iterator[str]:
    facts = record.classifier
    if facts is not None and facts.n_samples:
        yield (
            f"The classifier fails on {facts.n_failed:,} of {facts.n_samples:,} evaluated samples "
            f"({wording.percent(facts.n_failed / facts.n_samples)}); a failure means that {record.criterion or 'it is wrong'}."
        )
    yield count_sentence(record, findings)
    if any(item.has_suspect_labels for item in findings):
        yield "Some failures look like wrong labels; see the findings that say so."
    for outcome in record.repairs:
        yield from _repair(outcome).sentences[:1]


def _repair(outcome: RepairOutcome) -> RepairSection:
    repaired = outcome.repaired
    arms = (repaired, *(arm for arm in outcome.arms if arm.is_baseline))
    by_group = [{(change.kind, change.group): change for change in arm.changes} for arm in arms]
    rows, n_unchanged = [], 0
    for change in repaired.changes:
        key = (change.kind, change.group)
        after = tuple(changes[key] for changes in by_group if key in changes)
        if change.kind is GroupKind.CLASS and not any(one.gained or one.lost for one in after):
            n_unchanged += 1
            continue
        rows.append(RepairRow(group=change.group, kind=change.kind, before=change, after=after))
    return RepairSection(
        sentences=tuple(_repair_sentences(arms)),
        arms=arms,
        rows=tuple(rows),
        n_unchanged=n_unchanged,
        measured_on=outcome.measured_on.name,
        got_worse=repaired.got_worse,
    )


def _repair_sentences(arms: Sequence[RepairArm]) -> Iterator[str]:
    repaired, baselines = arms[0], arms[1:]
    for change in repaired.changes:
        if change.kind is GroupKind.SLICE and change.n_samples:
            rivals = [(arm, same) for arm in baselines if (same := _same_group(arm, change)) is not None]
            best = max(rivals, key=lambda pair: pair[1].right_after, default=None)
            rival = wording.rival_words(best[0].arm, best[1], _overall(best[0])) if best else ""
            yield f"{wording.repair_sentence(change)}{rival}."
    overall = _overall(repaired)
    if overall is not None:
        yield (
            f"Overall accuracy went from {wording.percent(overall.accuracy_before)} to {wording.percent(overall.accuracy_after)} "
            f"({overall.gained} samples gained, {overall.lost} lost)."
        )
    worse = ", ".join(f"“{group}”" for group in repaired.got_worse)
    yield f"Got worse: {worse}." if worse else "No group got worse."


def _same_group(arm: RepairArm, change: GroupChange) -> GroupChange | None:
    return next((one for one in arm.changes if (one.kind, one.group) == (change.kind, change.group)), None)


def _overall(arm: RepairArm) -> GroupChange | None:
    return next((change for change in arm.changes if change.kind is GroupKind.OVERALL), None)


def _flat(values: Mapping[str, JsonValue], prefix: str = "") -> Iterator[tuple[str, str]]:
    """Yield settings as dotted names with their values; whatever looks like a secret is not shown."""
    for name, value in values.items():
        if isinstance(value, dict) and value:
            yield from _flat(value, f"{prefix}{name}.")
        elif _SECRET.search(name) and value not in (None, ""):
            yield f"{prefix}{name}", "(not shown)"
        else:
            text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
            yield f"{prefix}{name}", _ADDRESS_WITH_PASSWORD.sub("(not shown)@", text)
