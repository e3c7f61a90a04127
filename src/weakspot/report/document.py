"""A run as one self-contained HTML page, as Markdown, as JSON or as a model card's file: the same facts, ordered and worded once.

The model card says what was evaluated, how well it does, where it fails, what was repaired and what is not known.
"""

import base64
import dataclasses
import io
import json
import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from html import escape
from typing import Any

from PIL import Image
from pydantic import JsonValue, TypeAdapter

from weakspot.core.bounds import SliceOrder
from weakspot.core.evidence import Share, Verdict
from weakspot.core.record import Record
from weakspot.core.repairs import GroupKind
from weakspot.core.run import MethodRecord, RunRecord
from weakspot.report import wording
from weakspot.report.findings import (
    Finding,
    RefusedSlice,
    SliceImages,
    count_sentence,
    dismissed_slices,
    finding,
    methods_of,
    trade_off_plot,
    unconfirmed_slices,
)
from weakspot.report.first_answer import FirstAnswer, first_answer
from weakspot.report.repairs import (
    STATUS_WORDS,
    Move,
    RepairSection,
    StrategyComparison,
    compare_strategies,
    fine_interval,
    fine_points,
    repair_section,
    signed_points,
    slice_warning,
    worse_sentences,
)
from weakspot.report.tree import TreeRow, first_rows, left_sentence, more_sentence, tree_rows
from weakspot.report.wording import percent
from weakspot.words.caption_rule import WordFrequency

MAX_NAMED = 8
LIMITS = (
    "A slice is proven for the samples it was measured on, and for others as far as they are drawn from the same source.",
    "What was not found is not proven to be absent: kinds that are too few, or that no method can tell apart, stay unseen.",
    "Words for slices are proposals; the rule that decides who is a member, and the figures, are what was tested.",
    "Causes are read off the training samples where there are any; they are probable, not proven.",
)


@dataclass(frozen=True, kw_only=True)
class DataFacts:
    """What is known of the data beside the run's own record.

    Args:
        name: of the project.
        n_by_split: samples of every split that has any.
        n_classes: how many classes there are.
        class_names: their names.
        n_unlabelled: samples without a label.
        n_quarantined: samples set aside because they are broken.
        task: how many labels a sample can have, in words.
        evaluated_splits: where slices were looked for.
    """

    name: str = "the project"
    n_by_split: Mapping[str, int] = field(default_factory=dict)
    n_classes: int = 0
    class_names: tuple[str, ...] = ()
    n_unlabelled: int = 0
    n_quarantined: int = 0
    task: str = "single-label"
    evaluated_splits: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class ClassAccuracy:
    """How often the classifier is right on one class."""

    class_name: str
    right: Share


@dataclass(frozen=True, kw_only=True)
class ModelCard:
    """What a model card says, in its order.

    Args:
        classifier: id of the classifier.
        data: what is known of the data; None if only the record is.
        evaluation: what was evaluated, in sentences.
        criterion: what counts as a failure.
        accuracy: share of evaluated samples without a failure; None if it was not measured.
        per_class: the same by class, lowest first.
        worst: the finding with the largest gap; None if nothing was confirmed.
        known_failures: confirmed slices in words, largest gap first.
        repairs: what was repaired and what got worse, in sentences.
        caveats: what was not tested, set aside or doubted.
        limits: what the method cannot say.
    """

    classifier: str
    data: DataFacts | None
    evaluation: tuple[str, ...]
    criterion: str
    accuracy: Share | None
    per_class: tuple[ClassAccuracy, ...]
    worst: Finding | None
    known_failures: tuple[str, ...]
    repairs: tuple[str, ...]
    caveats: tuple[str, ...]
    limits: tuple[str, ...] = LIMITS

    @property
    def accuracy_sentence(self) -> str:
        """Return how often it is right, in a sentence; empty if that was not measured."""
        return "" if self.accuracy is None else f"It is right on {_share(self.accuracy)}."

    @property
    def worst_sentence(self) -> str:
        if self.worst is None:
            return "No slice was confirmed, so there is no worst one."
        evidence = self.worst.evidence
        return (
            f"“{self.worst.slice_.title}”: right on {wording.percent(1 - evidence.rate_inside)} of {evidence.n_inside:,}, "
            f"about {round(100 * evidence.headline_gap)} points below the rest of the class."
        )


def model_card(
    record: RunRecord,
    findings: Sequence[Finding],
    *,
    repairs: Sequence[RepairSection] = (),
    dismissed: Sequence[RefusedSlice] = (),
    data: DataFacts | None = None,
) -> ModelCard:
    facts = record.classifier
    own = [found for found in findings if not found.explained]
    return ModelCard(
        classifier=record.inputs.get("classifier", "the classifier"),
        data=data,
        evaluation=tuple(_evaluation(record, data)),
        criterion=record.criterion or "the answer is wrong",
        accuracy=None
        if facts is None or not facts.n_samples
        else _right(facts.n_failed, facts.n_samples),
        per_class=tuple(
            sorted(class_accuracies(record), key=lambda one: (one.right.value, one.class_name))
        ),
        worst=own[0] if own else None,
        known_failures=tuple(found.sentence for found in own),
        repairs=tuple(_repairs(repairs)),
        caveats=tuple(_caveats(record, findings, dismissed, data)),
    )


def class_accuracies(record: RunRecord) -> tuple[ClassAccuracy, ...]:
    """Return how often the classifier is right on every class, in the order of the record."""
    counts = {} if record.classifier is None else record.classifier.per_class
    return tuple(
        ClassAccuracy(class_name=name, right=_right(n_failed, n_samples))
        for name, (n_samples, n_failed) in counts.items()
    )


def _right(n_failed: int, n_samples: int) -> Share:
    return Share.of(n_samples - n_failed, n_samples)


def _share(share: Share) -> str:
    return f"{wording.percent(share.value)} of {share.total:,} samples ({wording.interval(share.interval)})"


def _evaluation(record: RunRecord, data: DataFacts | None) -> Iterator[str]:
    if data is not None:
        counts = ", ".join(f"{name} {number:,}" for name, number in data.n_by_split.items())
        yield f"{data.n_classes:,} {'class' if data.n_classes == 1 else 'classes'}, {data.task}; samples by split: {counts}."
        yield f"Failures were looked for in {' and '.join(data.evaluated_splits)}: found on one half of it, proven on the other."
    if record.evidence:
        used = record.evidence[0].measured_on
        yield f"Proven on {used.name} ({wording.count(used.n_samples, 'sample')})."


def _repairs(sections: Sequence[RepairSection]) -> Iterator[str]:
    """Yield what the chosen repair did to slices and overall, and what got worse; the report says the rest."""
    for section in sections[:1]:
        n_slices = sum(
            change.kind is GroupKind.SLICE for arm in section.arms[:1] for change in arm.changes
        )
        if section.needs:
            yield "Nothing was retrained: rows to collect and weights for one's own training were listed."
            continue
        n_warnings = sum(bool(slice_warning(arm)) for arm in section.arms[:1])
        yield from section.sentences[: n_warnings + n_slices + 1]
        yield from (sentence for arm in section.arms[:1] for sentence in worse_sentences(arm))
    if len(sections) > 1:
        yield f"{wording.count(len(sections), 'way')} of repairing were compared; the first is the chosen one."


def _caveats(
    record: RunRecord,
    findings: Sequence[Finding],
    dismissed: Sequence[RefusedSlice],
    data: DataFacts | None,
) -> Iterator[str]:
    verdicts = [entry.verdict for entry in record.evidence]
    if n_few := verdicts.count(Verdict.TOO_FEW):
        yield f"{wording.count(n_few, 'slice')} could not be tested: too few samples."
    if n_circular := verdicts.count(Verdict.CIRCULAR):
        yield f"{wording.count(n_circular, 'slice')} could not be tested: defined by what the classifier said."
    if record.notes:
        names = _named([note.class_name for note in record.notes])
        yield f"Nothing, or not everything, could be said of {names}; the report says why."
    if data is not None and data.n_quarantined:
        yield f"{wording.count(data.n_quarantined, 'sample')} set aside as broken took no part."
    if data is not None and data.n_unlabelled:
        yield f"{wording.count(data.n_unlabelled, 'sample')} without a label took no part in the figures."
    doubted = [found.slice_.title for found in findings if found.has_suspect_labels]
    if doubted:
        yield f"Labels look wrong in {_named(doubted)}: there the failures may be the labels'."
    if dismissed:
        yield f"People dismissed {wording.count(len(dismissed), 'slice')}: {_named([one.slice_.title for one in dismissed])}."


def _named(names: Sequence[str]) -> str:
    unique = list(dict.fromkeys(names))
    shown = ", ".join(f"“{name}”" for name in unique[:MAX_NAMED])
    return shown if len(unique) <= MAX_NAMED else f"{shown} and {len(unique) - MAX_NAMED} more"


MAX_SECTIONS = 20
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
    not_confirmed: tuple[RefusedSlice, ...]
    repairs: tuple[RepairSection, ...]
    methods: tuple[MethodRecord, ...]
    correction: str
    record: RunRecord
    card: ModelCard
    classes: tuple[ClassAccuracy, ...] = ()
    dismissed: tuple[RefusedSlice, ...] = ()
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
        return own + explained[: max(0, MAX_SECTIONS - len(own))]


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


_NUMBER_AND_PERCENT = re.compile(r"(\d) %")
MAX_LISTED = 500
_ANSWERS = TypeAdapter(FirstAnswer)
_MARKDOWN = re.compile(r"([\\`*_\[\]<>|])")


def render_html(document: ReportDocument, thumbnails: Mapping[str, bytes] | None = None) -> str:
    """Return the page; thumbnails are JPEG files by sample id and become part of it."""
    images = {
        name: "data:image/jpeg;base64," + base64.b64encode(data).decode()
        for name, data in (thumbnails or {}).items()
    }
    from markupsafe import Markup

    plot = "" if document.strategies is None else Markup(trade_off_plot(document.strategies))
    page = (
        _environment(escape=True)
        .get_template("report.html")
        .render(
            report=document,
            thumbnails=images,
            words=wording,
            plot=plot,
            statuses=STATUS_WORDS,
            most_listed=MAX_LISTED,
        )
    )
    return _NUMBER_AND_PERCENT.sub("\\1\u00a0%", page)


def render_markdown(document: ReportDocument) -> str:
    """Return the report as Markdown, without images."""
    return render_template("report.md", document)


def render_template(name: str, document: ReportDocument) -> str:
    text = (
        _environment(escape=False)
        .get_template(name)
        .render(report=document, words=wording, most_listed=MAX_LISTED)
    )
    return re.sub(r"\n{3,}", "\n\n", text).strip() + "\n"


def render_json(document: ReportDocument) -> str:
    """Return the findings, what was not confirmed and the repairs as JSON; the run's own record holds everything else."""
    content = {
        "run_id": document.record.run_id,
        "first_answer": _ANSWERS.dump_python(document.answer, mode="json"),
        "headline": document.headline,
        "summary": list(document.summary),
        "findings": [
            {
                "slice_id": item.slice_.slice_id,
                "title": item.slice_.title,
                "method": item.slice_.method,
                "phrase": item.phrase,
                "sentence": item.sentence,
                "also_found": list(item.also_found),
                "names": [name.model_dump(mode="json") for name in item.slice_.names],
                "easy_names": [name.model_dump(mode="json") for name in item.slice_.easy_names],
                "evidence": item.evidence.model_dump(mode="json"),
                "hard_samples": [image.sample_id for image in item.images.hard],
                "easy_samples": [image.sample_id for image in item.images.easy],
                "people": item.people,
            }
            for item in document.findings
        ],
        "tree": [
            {
                "slice_id": row.slice_id,
                "title": row.slice_.title,
                "sentence": row.sentence,
                "depth": row.depth,
                "is_shown_first": row in document.first,
                **row.node.model_dump(mode="json", exclude={"slice_id"}),
            }
            for row in document.tree
        ],
        "left": list(document.left),
        "not_confirmed": [
            {
                "title": item.slice_.title,
                "method": item.slice_.method,
                "verdict": item.verdict,
                "evidence": _json(item.evidence),
            }
            for item in document.not_confirmed
        ],
        "dismissed": [
            {
                "title": item.slice_.title,
                "slice_id": item.slice_.slice_id,
                "method": item.slice_.method,
                "verdict": item.verdict,
                "by": item.decision.by,
                "time": item.decision.time,
                "reason": item.decision.reason,
                "evidence": _json(item.evidence),
            }
            for item in document.dismissed
            if item.decision is not None
        ],
        "model_card": _card_content(document.card),
        "class_findings": [one.model_dump(mode="json") for one in document.record.class_findings],
        "advice": [one.model_dump(mode="json") for one in document.record.advice],
        "checks": [one.model_dump(mode="json") for one in document.record.checks],
        "methods": [one.model_dump(mode="json") for one in document.methods],
        "correction": document.correction,
        "caption_words": [dataclasses.asdict(one) for one in document.caption_words],
        "repairs": [_repair_content(item) for item in document.repairs],
        "strategies": _strategies_content(document.strategies),
    }
    return json.dumps(content, ensure_ascii=False, indent=2) + "\n"


def _json(record: Record | None) -> Any:
    return None if record is None else record.model_dump(mode="json")


def _card_content(card: ModelCard) -> dict[str, Any]:
    return {
        "classifier": card.classifier,
        "evaluation": list(card.evaluation),
        "samples_by_split": {} if card.data is None else dict(card.data.n_by_split),
        "criterion": card.criterion,
        "accuracy": _json(card.accuracy),
        "per_class": {one.class_name: one.right.model_dump(mode="json") for one in card.per_class},
        "worst_slice": None if card.worst is None else card.worst.slice_.slice_id,
        "known_failures": list(card.known_failures),
        "repairs": list(card.repairs),
        "caveats": list(card.caveats),
        "limits": list(card.limits),
    }


def _repair_content(item: RepairSection) -> dict[str, Any]:
    return {
        "strategy": item.strategy,
        "sentences": list(item.sentences),
        "measured_on": item.measured_on,
        "got_worse": list(item.got_worse),
        "arms": [arm.model_dump(mode="json") for arm in item.arms],
        "accounting": [
            {
                "samples": row.data,
                "share": "formerly right, still right"
                if row.is_clean
                else "former failures, now right",
                "arms": [_json(share) for share in row.shares],
            }
            for row in item.accounting
        ],
        "aftermath": _json(item.looked_again),
        "calibration": item.calibration,
        "labelling": _json(item.request),
        "needs": [need.model_dump(mode="json") for need in item.needs],
        "files": list(item.files),
        "notes": list(item.notes),
    }


def _strategies_content(compared: StrategyComparison | None) -> list[dict[str, Any]]:
    return [
        {
            "strategy": row.strategy,
            "is_baseline": row.is_baseline,
            "is_chosen": row.is_chosen,
            "slices": _move_content(row.on_slices),
            "best_baseline": None
            if row.rival is None
            else {"arm": row.rival[0], **(_move_content(row.rival[1]) or {})},
            "rest_of_class": _move_content(row.on_rest),
            "overall": _move_content(row.overall),
            "spread": None if row.arm is None else _json(row.arm.spread),
            "given_groups": None if row.arm is None else _json(row.arm.given),
            "got_worse": list(row.got_worse),
            "n_lower": row.n_lower,
            "note": row.note,
        }
        for row in (compared.rows if compared is not None else ())
    ]


def _move_content(move: Move | None) -> dict[str, Any] | None:
    if move is None:
        return None
    return {**dataclasses.asdict(move), "interval": move.interval.model_dump(mode="json")}


@lru_cache(maxsize=2)
def _environment(*, escape: bool) -> Any:
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(
        loader=PackageLoader("weakspot.report"),
        autoescape=escape,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=StrictUndefined,
    )
    environment.filters["percent"] = wording.percent
    environment.filters["points"] = wording.points
    environment.filters["p_value"] = wording.p_value
    environment.filters["signed"] = signed_points
    environment.filters["fine_points"] = fine_points
    environment.filters["fine_interval"] = fine_interval
    environment.filters["plain"] = lambda text: _MARKDOWN.sub(r"\\\1", " ".join(str(text).split()))
    environment.filters["code"] = lambda text: (
        f"`{' '.join(str(text).split()).replace('`', chr(39))}`"
    )
    return environment


_SLUG = re.compile(r"[^a-z0-9]+")


def render_model_card(document: ReportDocument) -> str:
    text = render_template("model-card.md", document)
    return f"---\n{front_matter(document)}---\n\n{text}"


def front_matter(document: ReportDocument) -> str:
    """Return figures as YAML."""
    import yaml

    text: str = yaml.safe_dump(
        _content(document), sort_keys=False, allow_unicode=True, width=math.inf
    )
    return text


def _content(document: ReportDocument) -> dict[str, object]:
    card = document.card
    name = card.data.name if card.data is not None else "the project"
    task = card.data.task if card.data is not None else "single-label"
    return {
        "tags": ["image-classification", "weakspot"],
        "metrics": ["accuracy"],
        "model-index": [
            {
                "name": card.classifier,
                "results": [
                    {
                        "task": {
                            "type": "image-classification",
                            "name": f"Image classification, {task}",
                        },
                        "dataset": {"type": _slug(name), "name": name, "split": _splits(document)},
                        "metrics": list(_metrics(document)),
                    }
                ],
            }
        ],
    }


def _metrics(document: ReportDocument) -> Iterator[dict[str, object]]:
    card = document.card
    if card.accuracy is not None:
        yield {"type": "accuracy", "name": "Accuracy", "value": round(card.accuracy.value, 6)}
    if card.worst is not None:
        evidence = card.worst.evidence
        yield {
            "type": "accuracy",
            "name": f"Accuracy on the worst slice ({card.worst.slice_.title})",
            "value": round(1 - evidence.rate_inside, 6),
        }
        yield {
            "type": "accuracy-gap",
            "name": "Gap of the worst slice to the rest of its class",
            "value": round(evidence.headline_gap, 6),
        }


def _splits(document: ReportDocument) -> str:
    data = document.card.data
    return (
        " and ".join(data.evaluated_splits)
        if data is not None and data.evaluated_splits
        else "evaluation"
    )


def _slug(name: str) -> str:
    return _SLUG.sub("-", name.lower()).strip("-") or "project"


JPEG_QUALITY = 86
STYLE = (
    "body{font:16px/1.5 system-ui,sans-serif;max-width:66rem;margin:2rem auto;padding:0 1rem;color:#1c1c1c;background:#fff}"
    "table{border-collapse:collapse;margin:1rem 0;font-variant-numeric:tabular-nums}caption{text-align:left}"
    "td,th{padding:.3rem .7rem;border-bottom:1px solid #ddd;text-align:right;vertical-align:top}"
    "th:first-child,td.words{text-align:left}"
    "small{color:#5a6470;font-weight:400}td small{white-space:nowrap}figure{margin:1rem 0;overflow-x:auto}.scroll{overflow-x:auto}"
    "figure img{max-width:100%;height:auto}"
    "@media(prefers-color-scheme:dark){body{color:#eee;background:#1b1b1b;--ink:#eee;--quiet:#aaa;--accent:#6ba6e8}"
    "td,th{border-color:#444}small{color:#a0aab5}}"
    "@media print{body{color:#000;background:#fff;max-width:none}.scroll{overflow:visible}tr,figure{break-inside:avoid}}"
)


def small_page(title: str, parts: Iterable[str]) -> str:
    """Return a page of parts that are HTML already.

    Args:
        title: plain text; it is the heading, too.
        parts: what comes below it, in order; empty ones are left out.
    """
    head = (
        "<!doctype html><html lang='en'><head><meta charset='utf-8'><meta name='viewport' content='width=device-width'>"
        f"<title>weakspot: {escape(title)}</title><style>{STYLE}</style></head><body>"
    )
    return "\n".join(
        [head, f"<h1>{escape(title)}</h1>", *(part for part in parts if part), "</body></html>"]
    )


def small_page_of(template: str, title: str, **facts: object) -> str:
    """Return a small page whose parts a template of this room writes from facts."""
    return small_page(title, [_environment(escape=True).get_template(template).render(**facts)])


def paragraph(text: str) -> str:
    return f"<p>{escape(text)}</p>" if text else ""


def table(titles: Sequence[str], rows: Iterable[Sequence[str]], *, caption: str = "") -> str:
    """Return a table that scrolls by itself on narrow screens.

    Args:
        titles: of the columns, plain text.
        rows: cells that are HTML already, `<td>` and all; the first of a row is plain text and names it.
        caption: plain text above it.
    """
    head = "".join(f"<th scope='col'>{escape(title)}</th>" for title in titles)
    lines = "".join(
        f"<tr><th scope='row'>{escape(first)}</th>{''.join(others)}</tr>" for first, *others in rows
    )
    above = f"<caption>{escape(caption)}</caption>" if caption else ""
    return f"<div class='scroll' tabindex='0'><table>{above}<thead><tr>{head}</tr></thead><tbody>{lines}</tbody></table></div>"


def share_cell(share: Share) -> str:
    """Return a rate with its counts and interval as a cell; a dash where nothing was counted."""
    if not share.total:
        return "<td>–</td>"
    low, high = 100 * share.interval.low, 100 * share.interval.high
    counts = f"{share.count:,} of {share.total:,}<br>{low:.0f}–{high:.0f} %"
    return f"<td>{percent(share.value)}<br><small>{counts}</small></td>"


def text_cell(text: str, quiet: str = "") -> str:
    below = f"<br><small>{escape(quiet)}</small>" if quiet else ""
    return f"<td>{escape(text)}{below}</td>"


def figure(image: Image.Image, *, alt: str) -> str:
    stream = io.BytesIO()
    image.convert("RGB").save(stream, format="JPEG", quality=JPEG_QUALITY)
    data = base64.b64encode(stream.getvalue()).decode()
    return f"<figure><img src='data:image/jpeg;base64,{data}' alt='{escape(alt, quote=True)}'></figure>"
