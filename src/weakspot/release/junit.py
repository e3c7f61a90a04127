"""What became of a policy as JUnit XML, which every build server reads."""

import re
from collections.abc import Iterator
from itertools import groupby
from xml.etree import ElementTree as ET

from weakspot.release.result import PolicyEntry, PolicyResult, Ruling

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
        ET.SubElement(case, "failure", message=said, type=entry.verdict.value).text = _details(
            result, entry
        )
    elif entry.verdict is Ruling.NOT_JUDGED:
        ET.SubElement(case, "skipped", message=said)
    else:
        ET.SubElement(case, "system-out").text = said


def _details(result: PolicyResult, entry: PolicyEntry) -> str:
    lines = [entry.sentence, f"rule: {entry.rule}", f"run: {result.run_id}"]
    lines += [f"slice: {entry.slice_id}"] if entry.slice_id else []
    lines += [f"baseline: {result.baseline_run_id}"] if result.baseline_run_id else []
    return _clean("\n".join(lines))


def _clean(text: str) -> str:
    """Return a text without characters that XML cannot hold."""
    return NOT_XML.sub("\N{REPLACEMENT CHARACTER}", text)
