"""What a bench leaves behind: a journal while it runs, tables and plots at its end."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

from pydantic import ValidationError

from weakspot_lab.bench.scores import MethodScore, TableRow, group_rows
from weakspot_lab.charts import bar_groups

JOURNAL = "scores.jsonl"


class BenchJournal:
    """A file of scores, one line each, written as soon as they are known.

    Args:
        folder: where it is kept.
        key: identifies what is run; lines of another key are passed over.
    """

    def __init__(self, folder: Path, key: str) -> None:
        self._path = folder / JOURNAL
        self._key = key
        self._known = dict(self._read())

    def known(self, method: str, source: str, kind: str, number: int) -> MethodScore | None:
        return self._known.get((method, source, kind, number))

    def add(self, score: MethodScore) -> None:
        self._path.parent.mkdir(parents=True, exist_ok=True)
        with self._path.open("a", encoding="utf-8") as stream:
            stream.write(
                json.dumps({"key": self._key, "score": score.model_dump(mode="json")}) + "\n"
            )

    def finish(self) -> None:
        self._path.unlink(missing_ok=True)

    def _read(self) -> Mapping[tuple[str, str, str, int], MethodScore]:
        """Read the lines that are whole; a line that was cut off by a kill is measured again."""
        found: dict[tuple[str, str, str, int], MethodScore] = {}
        lines = self._path.read_text(encoding="utf-8").splitlines() if self._path.exists() else []
        for line in lines:
            try:
                entry = json.loads(line)
                score = MethodScore.model_validate(entry["score"])
            except (json.JSONDecodeError, ValidationError, KeyError, TypeError):
                continue
            if entry.get("key") == self._key:
                found[score.method, score.source, score.kind, score.number] = score
        return found


COLUMNS = (
    ("precision_at_10", "precision@10"),
    ("precision_at_25", "precision@25"),
    ("found", "put forward"),
    ("confirmed", "confirmed"),
    ("name_exact", "name exact"),
    ("name_synonym", "or synonym"),
    ("name_same_attribute", "or same attribute"),
    ("false_share", "false share"),
    ("n_tested", "tested"),
    ("seconds", "seconds"),
    ("megabytes", "MB"),
)


def table(rows: Sequence[TableRow]) -> str:
    parts: list[str] = []
    for (source, kind), own in group_rows(rows).items():
        n_worlds = own[0].n_worlds
        parts += [f"## {source}: {kind} ({n_worlds} world{'s' if n_worlds != 1 else ''})", ""]
        parts += [
            f"| method | {' | '.join(title for _, title in COLUMNS)} |",
            f"|---|{'---:|' * len(COLUMNS)}",
        ]
        parts += [
            f"| {row.method} | {' | '.join(_cell(row, name) for name, _ in COLUMNS)} |"
            for row in own
        ]
        parts += ["", *[f"{row.method}: {row.note}" for row in own if row.note], ""]
    return "\n".join(parts)


def _cell(row: TableRow, name: str) -> str:
    value = getattr(row, name)
    if value is None:
        return ""
    return f"{value:.1f}" if name in ("n_tested", "seconds", "megabytes") else f"{value:.2f}"


def plots(rows: Sequence[TableRow]) -> dict[str, str]:
    """Return SVG charts by file name: precision and confirmation of every method, per source."""
    charts: dict[str, str] = {}
    for source in dict.fromkeys(row.source for row in rows):
        own = [row for row in rows if row.source == source]
        for name, title in (
            ("precision_at_10", "precision@10"),
            ("confirmed", "known slices confirmed"),
            ("false_share", "false findings"),
        ):
            groups = {
                kind: {
                    row.method: getattr(row, name)
                    for row in own
                    if row.kind == kind and getattr(row, name) is not None
                }
                for kind in dict.fromkeys(row.kind for row in own)
            }
            shown = {kind: bars for kind, bars in groups.items() if bars}
            if shown:
                charts[f"{source}-{name}.svg".replace(" ", "-").replace(",", "")] = bar_groups(
                    shown, title=f"{source}: {title}"
                )
    return charts
