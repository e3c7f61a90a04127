"""What became of a policy for build servers and code hosts: JUnit XML, SARIF 2.1.0, and a comment on a pull request."""

import hashlib
import json
import re
from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Any
from urllib.parse import quote
from xml.etree import ElementTree as ET

from weakspot.gate.bars import between, percent
from weakspot.gate.result import PolicyEntry, PolicyResult, Ruling

NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
SUITE = "weakspot"


def junit_xml(result: PolicyResult) -> str:
    """Return one test case an entry: violated ones failed, those not judged skipped unless they count."""
    suites = ET.Element("testsuites", {"name": SUITE, **_counts(result, result.entries)})
    ordered = sorted(result.entries, key=lambda entry: entry.rule)
    for rule, entries in groupby(ordered, key=lambda entry: entry.rule):
        own = tuple(entries)
        suite = ET.SubElement(
            suites, "testsuite", {"name": f"{SUITE}.{rule}", **_counts(result, own)}
        )
        if result.started:
            suite.set("timestamp", result.started.removesuffix("+00:00"))
        for name, entry in _named(own):
            _add_case(suite, result, name, entry)
    ET.indent(suites)
    return (
        '<?xml version="1.0" encoding="UTF-8"?>\n' + ET.tostring(suites, encoding="unicode") + "\n"
    )


def _counts(result: PolicyResult, entries: tuple[PolicyEntry, ...]) -> dict[str, str]:
    n_failed = sum(entry in result.failing for entry in entries)
    n_skipped = (
        0 if result.unsure_fails else sum(entry.verdict is Ruling.NOT_JUDGED for entry in entries)
    )
    return {
        "tests": str(len(entries)),
        "failures": str(n_failed),
        "errors": "0",
        "skipped": str(n_skipped),
        "time": "0",
    }


def _named(entries: tuple[PolicyEntry, ...]) -> Iterator[tuple[str, PolicyEntry]]:
    """Yield every entry with a name that no other has: build servers take cases of the same name for one."""
    subjects = [entry.subject for entry in entries]
    for entry in entries:
        is_alone = subjects.count(entry.subject) == 1 or not entry.slice_id
        yield entry.subject if is_alone else f"{entry.subject} ({entry.slice_id})", entry


def _add_case(suite: ET.Element, result: PolicyResult, name: str, entry: PolicyEntry) -> None:
    case = ET.SubElement(
        suite, "testcase", classname=f"{SUITE}.{entry.rule}", name=_clean(name), time="0"
    )
    said = _clean(entry.sentence)
    if entry in result.failing:
        ET.SubElement(
            case, "failure", message=said, type=entry.verdict.value
        ).text = _failure_details(result, entry)
    elif entry.verdict is Ruling.NOT_JUDGED:
        ET.SubElement(case, "skipped", message=said)
    else:
        ET.SubElement(case, "system-out").text = said


def _failure_details(result: PolicyResult, entry: PolicyEntry) -> str:
    lines = [entry.sentence, f"rule: {entry.rule}", f"run: {result.run_id}"]
    lines += [f"slice: {entry.slice_id}"] if entry.slice_id else []
    lines += [f"baseline: {result.baseline_run_id}"] if result.baseline_run_id else []
    return _clean("\n".join(lines))


def _clean(text: str) -> str:
    """Return a text without characters that XML cannot hold."""
    return NOT_XML.sub("\N{REPLACEMENT CHARACTER}", text)


SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
TITLES = {
    "overall_accuracy": "Accuracy on all samples is too low",
    "class_accuracy": "Accuracy of a class is too low",
    "slice_accuracy": "Accuracy on a slice is too low",
    "slice_gap": "A slice fails too much more often than the rest of its class",
    "confirmed_slices": "There are too many confirmed slices",
    "failing_classes": "A class fails as a whole",
    "new_slices": "There is a confirmed slice that the baseline has not",
    "regressions": "Accuracy fell against the baseline",
    "accepted": "A slice is no longer accepted",
}
DEFAULT_PLACE = "policy.toml"


def sarif_json(result: PolicyResult, *, version: str) -> str:
    """Return the log: a result a violated entry, a notification an entry that was not judged.

    Args:
        result: what became of the policy.
        version: of weakspot.
    """
    rules = list(dict.fromkeys(entry.rule for entry in result.entries))
    run = {
        "tool": {
            "driver": {
                "name": "weakspot",
                "semanticVersion": version,
                "rules": [_rule(name) for name in rules],
            }
        },
        "automationDetails": {"id": f"weakspot/{result.run_id}"},
        "invocations": [
            {
                "executionSuccessful": True,
                "exitCode": result.exit_code,
                "toolExecutionNotifications": [
                    _notification(entry) for entry in result.of(Ruling.NOT_JUDGED)
                ],
            }
        ],
        "results": [_result(result, entry, rules.index(entry.rule)) for entry in result.failing],
        "columnKind": "unicodeCodePoints",
        "properties": {
            "runId": result.run_id,
            "baselineRunId": result.baseline_run_id,
            "headline": result.headline,
        },
    }
    return (
        json.dumps(
            {"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}, indent=1, ensure_ascii=False
        )
        + "\n"
    )


def _rule(name: str) -> dict[str, Any]:
    title = TITLES.get(name, name)
    return {
        "id": f"weakspot/{name}",
        "name": "".join(part.capitalize() for part in name.split("_")),
        "shortDescription": {"text": f"{title}."},
        "defaultConfiguration": {"level": "error"},
    }


def _result(result: PolicyResult, entry: PolicyEntry, rule_index: int) -> dict[str, Any]:
    mark = hashlib.sha256(f"{entry.rule}\n{entry.slice_id or entry.subject}".encode()).hexdigest()
    figures = entry.model_dump(
        mode="json",
        include={"subject", "slice_id", "value", "interval", "bar", "n_samples", "p_value"},
    )
    return {
        "ruleId": f"weakspot/{entry.rule}",
        "ruleIndex": rule_index,
        "kind": "fail",
        "level": "error",
        "message": {"text": entry.sentence},
        "locations": [
            {
                "physicalLocation": {
                    "artifactLocation": {
                        "uri": quote(result.policy or DEFAULT_PLACE),
                        "uriBaseId": "%SRCROOT%",
                    },
                    "region": {"startLine": 1},
                },
                "logicalLocations": [{"name": entry.subject, "kind": "object"}],
            }
        ],
        "partialFingerprints": {"weakspotEntry/v1": mark},
        "properties": {name: value for name, value in figures.items() if value not in (None, "")},
    }


def _notification(entry: PolicyEntry) -> dict[str, Any]:
    return {
        "descriptor": {"id": f"weakspot/{entry.rule}"},
        "associatedRule": {"id": f"weakspot/{entry.rule}"},
        "level": "note",
        "message": {"text": entry.sentence},
    }


MAX_CHARACTERS = 60_000
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
MAX_TEXT_LENGTH = 600
RESERVE = 400


def markdown_comment(result: PolicyResult, *, most_characters: int = MAX_CHARACTERS) -> str:
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
    line = line if len(line) <= MAX_TEXT_LENGTH else line[: MAX_TEXT_LENGTH - 1] + "…"
    line = line.replace("&", "&amp;").replace("<", "&lt;")
    return UNWANTED.sub("\\1\N{ZERO WIDTH SPACE}", SPECIAL.sub(r"\\\1", line))


def _length(lines: Sequence[str]) -> int:
    return sum(len(line) + 1 for line in lines)
