import json

import jsonschema
import pytest

from weakspot.gate.formats import TITLES, sarif_json

TEXT = {
    "type": "object",
    "required": ["text"],
    "properties": {"text": {"type": "string", "minLength": 1}},
}
LEVEL = {"enum": ["none", "note", "warning", "error"]}
RULE = {
    "type": "object",
    "required": ["id"],
    "additionalProperties": False,
    "properties": {
        "id": {"type": "string"},
        "name": {"type": "string"},
        "shortDescription": TEXT,
        "defaultConfiguration": {"type": "object", "properties": {"level": LEVEL}},
    },
}
LOCATION = {
    "type": "object",
    "required": ["physicalLocation"],
    "properties": {
        "physicalLocation": {
            "type": "object",
            "required": ["artifactLocation"],
            "properties": {
                "artifactLocation": {
                    "type": "object",
                    "required": ["uri"],
                    "properties": {"uri": {"pattern": "^[^/]"}},
                },
                "region": {
                    "type": "object",
                    "properties": {"startLine": {"type": "integer", "minimum": 1}},
                },
            },
        },
        "logicalLocations": {
            "type": "array",
            "items": {"type": "object", "properties": {"name": {"type": "string"}}},
        },
    },
}
RESULT = {
    "type": "object",
    "required": ["message", "ruleId", "ruleIndex", "level", "locations"],
    "properties": {
        "message": TEXT,
        "ruleId": {"type": "string"},
        "ruleIndex": {"type": "integer", "minimum": 0},
        "kind": {"enum": ["notApplicable", "pass", "fail", "review", "open", "informational"]},
        "level": LEVEL,
        "locations": {"type": "array", "minItems": 1, "items": LOCATION},
        "partialFingerprints": {"type": "object", "additionalProperties": {"type": "string"}},
    },
}
NOTIFICATION = {
    "type": "object",
    "required": ["message"],
    "properties": {"message": TEXT, "level": LEVEL},
}
INVOCATION = {
    "type": "object",
    "required": ["executionSuccessful"],
    "properties": {
        "executionSuccessful": {"type": "boolean"},
        "exitCode": {"type": "integer"},
        "toolExecutionNotifications": {"type": "array", "items": NOTIFICATION},
    },
}
DRIVER = {
    "type": "object",
    "required": ["name"],
    "properties": {
        "name": {"type": "string"},
        "rules": {"type": "array", "uniqueItems": True, "items": RULE},
    },
}
RUN = {
    "type": "object",
    "required": ["tool"],
    "properties": {
        "tool": {"type": "object", "required": ["driver"], "properties": {"driver": DRIVER}},
        "results": {"type": "array", "items": RESULT},
        "invocations": {"type": "array", "items": INVOCATION},
        "columnKind": {"enum": ["utf16CodeUnits", "unicodeCodePoints"]},
    },
}
SCHEMA = {
    "type": "object",
    "required": ["version", "runs"],
    "properties": {
        "$schema": {"format": "uri"},
        "version": {"const": "2.1.0"},
        "runs": {"type": "array", "items": RUN},
    },
}
"""The parts of the SARIF 2.1.0 schema that readers depend on."""


@pytest.mark.parametrize("unsure_fails", [False, True])
def test_sarif_json__is_shaped_as_the_standard_says(result, unsure_fails):
    log = json.loads(sarif_json(result(unsure_fails=unsure_fails), version="1.2.3"))
    jsonschema.Draft202012Validator(SCHEMA).validate(log)


def test_sarif_json__results_point_to_their_rules(result):
    run = json.loads(sarif_json(result(), version="1.2.3"))["runs"][0]
    rules = [rule["id"] for rule in run["tool"]["driver"]["rules"]]
    assert len(set(rules)) == len(rules)
    assert [rules[result["ruleIndex"]] for result in run["results"]] == [
        result["ruleId"] for result in run["results"]
    ]
    assert [result["level"] for result in run["results"]] == ["error"]


def test_sarif_json__what_is_not_judged_is_told_but_is_no_result(result):
    run = json.loads(sarif_json(result(), version="1.2.3"))["runs"][0]
    notes = run["invocations"][0]["toolExecutionNotifications"]
    assert [note["message"]["text"] for note in notes] == ["“small” has 3 samples."]


def test_sarif_json__the_same_finding_has_the_same_mark_in_another_run(result):
    first, second = (
        json.loads(sarif_json(made, version="1"))["runs"][0]["results"][0]["partialFingerprints"]
        for made in (result(), result().model_copy(update={"run_id": "another"}))
    )
    assert first == second


def test_sarif_json__every_rule_has_a_title():
    from weakspot.gate.policy import RULES

    assert set(TITLES) == {*RULES, "accepted"}
