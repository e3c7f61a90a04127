"""The model card as a file: Markdown below a front matter that model hubs read; nothing is asked of a hub."""

import json
import re
from collections.abc import Iterator, Mapping

from weakspot.report.document import ReportDocument
from weakspot.report.render import render_template

_SPACES = re.compile(r"\s+")
_SLUG = re.compile(r"[^a-z0-9]+")
INDENT = "  "


def render_model_card(document: ReportDocument) -> str:
    text = render_template("model-card.md", document)
    return f"---\n{front_matter(document)}---\n\n{text}"


def front_matter(document: ReportDocument) -> str:
    """Return figures as YAML: strings are quoted, so that any name of a class or slice is one."""
    return "\n".join(_yaml(_content(document))) + "\n"


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
            "name": f"Accuracy on the worst slice ({card.worst.title})",
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


def _yaml(value: object, indent: str = "") -> Iterator[str]:
    if isinstance(value, Mapping):
        for key, item in value.items():
            yield from _entry(f"{indent}{key}:", item, indent)
    elif isinstance(value, list):
        for item in value:
            yield from _item(item, indent)


def _entry(start: str, item: object, indent: str) -> Iterator[str]:
    if isinstance(item, Mapping):
        yield start
        yield from _yaml(item, indent + INDENT)
    elif isinstance(item, list):
        yield start if item else f"{start} []"
        yield from _yaml(item, indent)
    else:
        yield f"{start} {_scalar(item)}"


def _item(item: object, indent: str) -> Iterator[str]:
    if isinstance(item, Mapping):
        first, *others = _yaml(item, indent + INDENT)
        yield f"{indent}- {first[len(indent) + len(INDENT) :]}"
        yield from others
    else:
        yield f"{indent}- {_scalar(item)}"


def _scalar(value: object) -> str:
    """Return a number as it is and anything else as a quoted string without characters that YAML does not allow."""
    if isinstance(value, int | float):
        return repr(value)
    text = _SPACES.sub(" ", str(value))
    return json.dumps(
        "".join(character if character.isprintable() else " " for character in text),
        ensure_ascii=False,
    )
