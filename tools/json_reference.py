"""What `--json` writes: a page that names every answer, and a JSON Schema of each in docs/reference/schema."""

import inspect
import json
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter

from weakspot.core.run import RunRecord
from weakspot.gate.result import PolicyResult
from weakspot.generate.counterfactuals import CounterfactualSeries
from weakspot.generate.generated_folder import GenerateResult
from weakspot.generate.search_run import SearchRecord
from weakspot.project.comparison import Comparison
from weakspot.project.nearest import NearestResult
from weakspot.run.ingestion import IngestResult
from weakspot.run.phrase_questions import AskResult
from weakspot.run.preparation import EmbedResult

FOLDER = Path(__file__).parent.parent / "docs" / "reference" / "schema"
ANSWERS = {
    "run": (RunRecord, "run, demo, discover, verify, repair"),
    "ask": (AskResult, "ask"),
    "nearest": (NearestResult, "nearest"),
    "compare": (Comparison, "compare"),
    "check": (PolicyResult, "check"),
    "ingest": (IngestResult, "ingest"),
    "embed": (EmbedResult, "embed"),
    "generate": (GenerateResult, "generate"),
    "search": (SearchRecord, "search"),
    "counterfactual": (CounterfactualSeries, "counterfactual"),
}
HEAD = """# JSON

Made by `tools/make_reference.py`; do not edit. With `--json` a command writes one JSON value to the output stream and nothing else
there; progress and errors go to the error stream, and exit codes are the same. `report --json` names the written files by format,
`export` and `import` the files, `doctor` has `verdict`, `checks`, `findings` and `registered`, and `watch` writes one object a round.
The others are below; the JSON Schema of each says what every field means. New fields may come with any version; a field that is
there keeps its name and meaning, or is deprecated as [names in Python](python.md) are.
"""


def _with_open_rules(schema: Any) -> Any:
    """Let a rule have the fields of its kind: kinds are an open list, so the schema knows only that each names itself."""
    if isinstance(schema, dict):
        told = {name: _with_open_rules(part) for name, part in schema.items()}
        return told | {"additionalProperties": True} if told.get("title") == "Rule" else told
    return [_with_open_rules(part) for part in schema] if isinstance(schema, list) else schema


def schemas() -> dict[str, str]:
    """Return the JSON Schema of every answer by file name."""
    return {
        f"{name}.json": json.dumps(
            _with_open_rules(TypeAdapter(kind).json_schema(mode="serialization")),
            indent=1,
            ensure_ascii=False,
        )
        + "\n"
        for name, (kind, _) in ANSWERS.items()
    }


def json_page() -> str:
    """Return the page; the schemas beside it say what every field means."""
    lines = [HEAD, "| commands | what they write | JSON Schema |", "|---|---|---|"]
    for name, (kind, commands) in ANSWERS.items():
        summary = " ".join((inspect.getdoc(kind) or "").split("\n\n")[0].split())
        called = ", ".join(f"`{one}`" for one in commands.split(", "))
        lines.append(f"| {called} | {summary} | [{name}.json](schema/{name}.json) |")
    return "\n".join(lines) + "\n"


def write_schemas() -> None:
    FOLDER.mkdir(parents=True, exist_ok=True)
    for name, text in schemas().items():
        (FOLDER / name).write_text(text, encoding="utf-8")
