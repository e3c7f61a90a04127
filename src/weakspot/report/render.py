"""A report as one self-contained HTML page, as Markdown or as JSON."""

import base64
import json
import re
from collections.abc import Mapping
from typing import Any

from weakspot.report import wording
from weakspot.report.document import ReportDocument

_NUMBER_AND_PERCENT = re.compile(r"(\d) %")
_MARKDOWN = re.compile(r"([\\`*_\[\]<>|])")


def render_html(document: ReportDocument, thumbnails: Mapping[str, bytes] | None = None) -> str:
    """Return the page; thumbnails are JPEG files by sample id and become part of it."""
    pictures = {name: "data:image/jpeg;base64," + base64.b64encode(data).decode() for name, data in (thumbnails or {}).items()}
    page = _environment(escape=True).get_template("report.html").render(report=document, thumbnails=pictures, words=wording)
    return _NUMBER_AND_PERCENT.sub("\\1\u00a0%", page)


def render_markdown(document: ReportDocument) -> str:
    """Return the report as Markdown, without pictures."""
    text = _environment(escape=False).get_template("report.md").render(report=document, words=wording)
    return re.sub(r"\n{3,}", "\n\n", text).strip() + "\n"


def render_json(document: ReportDocument) -> str:
    """Return the findings, what was not confirmed and the repairs as JSON; the run's own record holds everything else."""
    content = {
        "run_id": document.record.run_id,
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
                "hard_samples": [picture.sample_id for picture in item.pictures.hard],
                "easy_samples": [picture.sample_id for picture in item.pictures.easy],
            }
            for item in document.findings
        ],
        "not_confirmed": [
            {"title": item.title, "method": item.method, "verdict": item.verdict, "evidence": item.evidence.model_dump(mode="json")}
            for item in document.not_confirmed
        ],
        "methods": [one.model_dump(mode="json") for one in document.methods],
        "control": document.control,
        "repairs": [
            {
                "sentences": list(item.sentences),
                "measured_on": item.measured_on,
                "got_worse": list(item.got_worse),
                "arms": [arm.model_dump(mode="json") for arm in item.arms],
            }
            for item in document.repairs
        ],
    }
    return json.dumps(content, ensure_ascii=False, indent=2) + "\n"


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
    environment.filters["plain"] = lambda text: _MARKDOWN.sub(r"\\\1", " ".join(str(text).split()))
    return environment
