import json

import jsonschema
import pytest

from weakspot.gate.formats import TITLES, sarif_json

STRING = {"type": "string"}
LEVEL = {"enum": ["none", "note", "warning", "error"]}
KIND = {"enum": ["notApplicable", "pass", "fail", "review", "open", "informational"]}


def _object(*required, **properties):
    return {"type": "object", "required": list(required), "properties": properties}


def _list(items, **more):
    return {"type": "array", "items": items, **more}


TEXT = _object("text", text={"type": "string", "minLength": 1})
RULE = _object(
    "id", id=STRING, name=STRING, shortDescription=TEXT, defaultConfiguration=_object(level=LEVEL)
) | {"additionalProperties": False}
LOCATION = _object(
    "physicalLocation",
    physicalLocation=_object(
        "artifactLocation",
        artifactLocation=_object("uri", uri={"pattern": "^[^/]"}),
        region=_object(startLine={"type": "integer", "minimum": 1}),
    ),
    logicalLocations=_list(_object(name=STRING)),
)
RESULT = _object(
    *("message", "ruleId", "ruleIndex", "level", "locations"),
    message=TEXT,
    ruleId=STRING,
    ruleIndex={"type": "integer", "minimum": 0},
    kind=KIND,
    level=LEVEL,
    locations=_list(LOCATION, minItems=1),
    partialFingerprints={"type": "object", "additionalProperties": STRING},
)
INVOCATION = _object(
    "executionSuccessful",
    executionSuccessful={"type": "boolean"},
    exitCode={"type": "integer"},
    toolExecutionNotifications=_list(_object("message", message=TEXT, level=LEVEL)),
)
RUN = _object(
    "tool",
    tool=_object(
        "driver", driver=_object("name", name=STRING, rules=_list(RULE, uniqueItems=True))
    ),
    results=_list(RESULT),
    invocations=_list(INVOCATION),
    columnKind={"enum": ["utf16CodeUnits", "unicodeCodePoints"]},
)
SCHEMA = _object("version", "runs", version={"const": "2.1.0"}, runs=_list(RUN))
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
