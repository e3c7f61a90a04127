"""The facts of a run, ordered and worded; what a page, a Markdown file and a JSON file show alike."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from pydantic import JsonValue

from weakspot.core.ordering import SliceOrder
from weakspot.core.run import MethodRecord, RunRecord
from weakspot.lexicon.word_frequency import WordFrequency
from weakspot.report import wording
from weakspot.report.findings import (
    DismissedSlice,
    Finding,
    TestedSlice,
    count_sentence,
    dismissed_slices,
    finding,
    methods_of,
    unconfirmed_slices,
)
from weakspot.report.first_answer import FirstAnswer, first_answer
from weakspot.report.image_budget import SliceImages
from weakspot.report.model_card import (
    ClassAccuracy,
    DataFacts,
    ModelCard,
    class_accuracies,
    model_card,
)
from weakspot.report.repairs import RepairSection, repair_section
from weakspot.report.strategies import StrategyComparison, compare_strategies
from weakspot.report.tree import TreeRow, first_rows, left_sentence, more_sentence, tree_rows

MOST_SECTIONS = 20
_SECRET = re.compile(
    r"token|secret|password|passwd|api_?key|authorization|credential", re.IGNORECASE
)
_ADDRESS_WITH_PASSWORD = re.compile(r"(?<=://)[^/@\s]+@")


@dataclass(frozen=True, kw_only=True)
class ReportDocument:
    """Everything a report says, in the order it is said; strategies are compared where there are several.

    Args:
        answer: what to say first.
        headline: the most important finding.
        summary: the rest in short.
        findings: confirmed slices.
        not_confirmed: what was tested and not confirmed.
        repairs: what repairs did.
        methods: what every discoverer did.
        correction: which error rate is held.
        record: the run.
        card: the model card.
        classes: accuracy by class.
        dismissed: slices that people dismissed.
        settings: dotted names and values, secrets left out.
        strategies: side by side, None if there are not several.
        image_note: said if fewer images are shown than asked for.
        caption_words: how often failures and other samples of the discovery half say a word, as a baseline; empty without captions.
        tree: every confirmed slice in its place.
        first: the rows of it to begin with.
        more: how many are not among these.
        left: how many failures of each class are in no finding.
        class_images: what to show of findings on whole classes, by id.
    """

    answer: FirstAnswer
    headline: str
    summary: tuple[str, ...]
    findings: tuple[Finding, ...]
    not_confirmed: tuple[TestedSlice, ...]
    repairs: tuple[RepairSection, ...]
    methods: tuple[MethodRecord, ...]
    correction: str
    record: RunRecord
    card: ModelCard
    classes: tuple[ClassAccuracy, ...] = ()
    dismissed: tuple[DismissedSlice, ...] = ()
    settings: tuple[tuple[str, str], ...] = field(default=())
    strategies: StrategyComparison | None = None
    image_note: str = ""
    caption_words: tuple[WordFrequency, ...] = ()
    tree: tuple[TreeRow, ...] = ()
    first: tuple[TreeRow, ...] = ()
    more: str = ""
    left: tuple[str, ...] = ()
    class_images: Mapping[str, SliceImages] = field(default_factory=dict)

    @property
    def sections(self) -> tuple[Finding, ...]:
        """Return the findings that have a section of their own: few of those that others explain."""
        own = tuple(one for one in self.findings if not one.explained)
        explained = tuple(one for one in self.findings if one.explained)
        return own + explained[: max(0, MOST_SECTIONS - len(own))]


def build_document(
    record: RunRecord,
    images: Mapping[str, SliceImages] | None = None,
    data: DataFacts | None = None,
    *,
    asked: Sequence[str] = (),
    order: SliceOrder = SliceOrder.BOTH,
) -> ReportDocument:
    """Order and word the facts of a run; images are given by slice id, `asked` says what is left to spend."""
    shown = images or {}
    rows = tree_rows(record, order)
    first = first_rows(rows)
    findings = tuple(
        finding(number, row.slice_, row.evidence, record, shown.get(row.slice_id, SliceImages()))
        for number, row in enumerate(sorted(rows, key=lambda row: row.is_explained), start=1)
    )
    repairs = tuple(repair_section(result) for result in record.repairs)
    dismissed = dismissed_slices(record)
    return ReportDocument(
        answer=first_answer(record, order=order),
        headline=_headline(findings, record),
        summary=(*_summary(record, findings), *asked),
        findings=findings,
        not_confirmed=unconfirmed_slices(record),
        repairs=repairs,
        methods=methods_of(record),
        correction=wording.CORRECTION_WORDS[record.evidence[0].correction]
        if record.evidence
        else "",
        record=record,
        card=model_card(record, findings, repairs=repairs, dismissed=dismissed, data=data),
        classes=class_accuracies(record),
        dismissed=dismissed,
        settings=tuple(_flat(record.settings)),
        strategies=compare_strategies(record.repairs),
        tree=rows,
        first=first,
        more=more_sentence(rows, first),
        left=tuple(left_sentence(tree) for tree in record.trees),
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
    # What images belong together was looked for once a run; the last time counts.
    yield from [one.summary for one in record.stages if one.stage == "groups"][-1:]
    if dismissed := dismissed_slices(record):
        yield f"People dismissed {wording.count(len(dismissed), 'slice')}; see who and why below."
    if any(item.has_suspect_labels for item in findings):
        yield "Some failures look like wrong labels; see the findings that say so."
    for result in record.repairs[:1]:
        yield from repair_section(result).sentences[: 0 if result.needs else 1]
    if len(record.repairs) > 1:
        yield f"{wording.count(len(record.repairs), 'way')} of repairing were compared; see the table."


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
