"""A report as one self-contained HTML page, as Markdown or as JSON."""

import base64
import dataclasses
import json
import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from pydantic import TypeAdapter

from weakspot.report import wording
from weakspot.report.curves import trade_off_plot
from weakspot.report.document import ReportDocument
from weakspot.report.findings import DismissedSlice
from weakspot.report.first_answer import FirstAnswer
from weakspot.report.model_card import ModelCard
from weakspot.report.repair_wording import STATUS_WORDS, fine_interval, fine_points, signed_points
from weakspot.report.repairs import RepairSection
from weakspot.report.strategies import Move, StrategyComparison

_NUMBER_AND_PERCENT = re.compile(r"(\d) %")
MOST_LISTED = 500
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
            most_listed=MOST_LISTED,
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
        .render(report=document, words=wording, most_listed=MOST_LISTED)
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
                "slice_id": item.slice_id,
                "title": item.title,
                "method": item.method,
                "phrase": item.phrase,
                "sentence": item.sentence,
                "also_found": list(item.also_found),
                "names": [name.model_dump(mode="json") for name in item.names],
                "easy_names": [name.model_dump(mode="json") for name in item.easy_names],
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
                "title": item.title,
                "method": item.method,
                "verdict": item.verdict,
                "evidence": item.evidence.model_dump(mode="json"),
            }
            for item in document.not_confirmed
        ],
        "dismissed": [_dismissed_content(item) for item in document.dismissed],
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


def _dismissed_content(item: DismissedSlice) -> dict[str, Any]:
    content = dataclasses.asdict(dataclasses.replace(item, evidence=None))
    return {
        **content,
        "evidence": None if item.evidence is None else item.evidence.model_dump(mode="json"),
    }


def _card_content(card: ModelCard) -> dict[str, Any]:
    return {
        "classifier": card.classifier,
        "evaluation": list(card.evaluation),
        "samples_by_split": {} if card.data is None else dict(card.data.n_by_split),
        "criterion": card.criterion,
        "accuracy": None if card.accuracy is None else card.accuracy.model_dump(mode="json"),
        "per_class": {one.class_name: one.right.model_dump(mode="json") for one in card.per_class},
        "worst_slice": None if card.worst is None else card.worst.slice_id,
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
                "arms": [
                    None if share is None else share.model_dump(mode="json") for share in row.shares
                ],
            }
            for row in item.accounting
        ],
        "aftermath": None
        if item.looked_again is None
        else item.looked_again.model_dump(mode="json"),
        "calibration": item.calibration,
        "labelling": None if item.request is None else item.request.model_dump(mode="json"),
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
            "spread": None
            if row.arm is None or row.arm.spread is None
            else row.arm.spread.model_dump(mode="json"),
            "given_groups": None
            if row.arm is None or row.arm.given is None
            else row.arm.given.model_dump(mode="json"),
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
