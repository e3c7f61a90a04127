"""The model card of a learnt text side: what it is, how well it does, where it fails."""

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from weakspot_lab.align.training import AlignResult


@dataclass(frozen=True, kw_only=True)
class Figure:
    """One measured number.

    Attributes:
        name: What was measured.
        value: The number.
        n_samples: On how many samples.
        beside: The same figure of a published model, with its name, if there is one.
    """

    name: str
    value: float
    n_samples: int
    beside: str = ""


@dataclass(frozen=True, kw_only=True)
class Card:
    """Everything that a user of a text side should know before trusting it.

    Attributes:
        title: Name of the text side.
        summary: One paragraph on what it is.
        figures: Measured numbers.
        limits: What it is bad at, one sentence each.
        data: What it was learnt from, with licence or citation, one sentence each.
        settings: Learning parameters and other facts.
    """

    title: str
    summary: str
    figures: Sequence[Figure]
    limits: Sequence[str]
    data: Sequence[str]
    settings: Mapping[str, object]

    def to_json(self) -> str:
        return json.dumps(asdict(self), indent=2, sort_keys=True, ensure_ascii=False) + "\n"

    def to_markdown(self) -> str:
        rows = [
            f"| {figure.name} | {figure.value:.3f} | {figure.n_samples:,} | {figure.beside} |"
            for figure in self.figures
        ]
        parts = [
            f"# {self.title}",
            self.summary,
            "\n".join(
                [
                    "## Figures",
                    "",
                    "| figure | value | samples | beside |",
                    "|---|---|---|---|",
                    *rows,
                ]
            ),
            _bullets("What it is bad at", self.limits),
            _bullets("Learnt from", self.data),
            _bullets("Settings", [f"{name}: {value}" for name, value in self.settings.items()]),
        ]
        return "\n\n".join(part for part in parts if part) + "\n"


def settings_of(result: AlignResult) -> dict[str, object]:
    recall = max(recall for _, recall in result.history)
    return {
        **asdict(result.parameters),
        "best_step": result.best_step,
        "held_out_recall_at_10": round(recall, 4),
    }


def write_card(card: Card, folder: Path) -> tuple[Path, Path]:
    """Write `CARD.md` and `card.json` into a folder, each in one atomic step."""
    folder.mkdir(parents=True, exist_ok=True)
    written = []
    for name, text in (("CARD.md", card.to_markdown()), ("card.json", card.to_json())):
        partial = folder / f"{name}.partial"
        partial.write_text(text, encoding="utf-8")
        os.replace(partial, folder / name)
        written.append(folder / name)
    return written[0], written[1]


def _bullets(heading: str, lines: Sequence[str]) -> str:
    return "\n".join([f"## {heading}", "", *(f"- {line}" for line in lines)]) if lines else ""
