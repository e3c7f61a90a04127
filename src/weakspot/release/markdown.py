"""What became of a policy as a comment on a pull request: the verdict first, everything else below it."""

import re
from collections.abc import Sequence

from weakspot.release.bars import between, percent
from weakspot.release.result import PolicyEntry, PolicyResult, Ruling

MOST_CHARACTERS = 60_000
MARK = "<!-- weakspot check -->"
SPECIAL = re.compile(r"([\\`*_{}\[\]#|~>])")
UNWANTED = re.compile(r"(@|:(?=//)|www(?=\.))")
CONTROL = re.compile(r"[\x00-\x1f\x7f]")
SIGNS = {
    Ruling.KEPT: "✅ kept",
    Ruling.VIOLATED: "❌ violated",
    Ruling.NOT_JUDGED: "⚪ not judged",
    Ruling.ACCEPTED: "🟡 accepted",
}
COUNTED = ("confirmed_slices", "failing_classes", "new_slices")
LONGEST_TEXT = 600
RESERVE = 400


def markdown_comment(result: PolicyResult, *, most_characters: int = MOST_CHARACTERS) -> str:
    """Return the comment, never longer than allowed; what does not fit is counted."""
    sign = "✅" if result.is_kept else "❌"
    head = [MARK, f"## {sign} weakspot: {_escape(result.headline)}", ""]
    tail = ["", f"<sub>{_facts(result)}</sub>", ""]
    space = most_characters - _length(head) - _length(tail) - RESERVE
    failing = _table(result.failing, space // 2) if result.failing else []
    changes = _changes(result, (space - _length(failing)) // 2)
    details = _details(result, space - _length(failing) - _length(changes))
    return "\n".join([*head, *failing, *changes, *details, *tail])[:most_characters]


def _table(entries: Sequence[PolicyEntry], space: int) -> list[str]:
    lines = ["| rule | subject | measured | bar | |", "|---|---|---|---|---|"]
    rows = [
        f"| {_escape(entry.rule)} | {_escape(entry.subject)} | {_measure(entry)} | {_bar(entry)} | {_escape(entry.sentence)} |"
        for entry in entries
    ]
    return [*_fitting(lines, rows, space), ""]


def _changes(result: PolicyResult, space: int) -> list[str]:
    compared = [
        entry for entry in result.entries if entry.before is not None and entry.after is not None
    ]
    if not compared:
        return []
    lines = [
        "**Before and now, on the same samples**",
        "",
        "| | samples | baseline | now | change | |",
        "|---|---|---|---|---|---|",
    ]
    ordered = sorted(compared, key=lambda entry: entry.value or 0.0)
    rows = [
        f"| {_escape(entry.subject)} | {entry.n_samples} | {percent(entry.before or 0.0)} | {percent(entry.after or 0.0)} "
        f"| {_measure(entry)} | {SIGNS[entry.verdict]} |"
        for entry in ordered
    ]
    return [*_fitting(lines, rows, space), ""]


def _details(result: PolicyResult, space: int) -> list[str]:
    head = ["<details>", f"<summary>All {len(result.entries)} checks</summary>", ""]
    foot = ["", "</details>"]
    rows = [
        f"- {SIGNS[entry.verdict]} **{_escape(entry.rule)}**: {_escape(entry.sentence)}"
        for entry in result.entries
    ]
    rows += [f"- {_escape(note)}" for note in result.notes]
    return [*_fitting(head, rows, space - _length(foot)), *foot]


def _fitting(head: list[str], rows: list[str], space: int) -> list[str]:
    lines, left = list(head), space - _length(head)
    for number, row in enumerate(rows):
        if len(row) + 1 > left:
            return [*lines, "", f"… and {len(rows) - number} more."]
        lines.append(row)
        left -= len(row) + 1
    return lines


def _facts(result: PolicyResult) -> str:
    parts = [f"run {result.run_id}"]
    parts += [f"classifier {result.classifier_id}"] if result.classifier_id else []
    parts += [f"baseline {result.baseline_run_id}"] if result.baseline_run_id else []
    parts.append(f"intervals hold together at {percent(result.level)}")
    return _escape(" · ".join(parts))


def _measure(entry: PolicyEntry) -> str:
    if entry.value is None:
        return ""
    shown = f"{entry.value:.0f}" if entry.rule in COUNTED else percent(entry.value)
    return shown if entry.interval is None else f"{shown} ({between(entry.interval)})"


def _bar(entry: PolicyEntry) -> str:
    if entry.bar is None:
        return ""
    return f"{entry.bar:.0f}" if entry.rule in COUNTED else percent(entry.bar)


def _escape(text: str) -> str:
    """Return a text that shows as it is: no markup, no HTML, no table cell, no link, nobody mentioned."""
    line = " ".join(CONTROL.sub(" ", text).split())
    line = line if len(line) <= LONGEST_TEXT else line[: LONGEST_TEXT - 1] + "…"
    line = line.replace("&", "&amp;").replace("<", "&lt;")
    return UNWANTED.sub("\\1\N{ZERO WIDTH SPACE}", SPECIAL.sub(r"\\\1", line))


def _length(lines: Sequence[str]) -> int:
    return sum(len(line) + 1 for line in lines)
