"""What became of a policy as SARIF 2.1.0, which code hosts show beside a change."""

import hashlib
import json
from typing import Any
from urllib.parse import quote

from weakspot.release.result import PolicyEntry, PolicyResult, Ruling

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
