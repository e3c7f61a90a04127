import json

import pytest

from weakspot.testing.fakes import propose
from weakspot.testing.scenes import FACTOR_NAMES, FACTORS

STRINGS = {"type": "array", "items": {"type": "string"}}


def _proposed(properties, prompt="Propose.", seed=0):
    return json.loads(
        propose(prompt, schema={"type": "object", "properties": properties}, seed=seed)
    )


def test_propose__keys_choose_the_vocabulary():
    found = _proposed(
        {"colours": STRINGS, "attributes": STRINGS, "captions": {**STRINGS, "maxItems": 2}},
        prompt="About a disc.",
    )
    assert set(found["colours"]) == set(FACTORS["colour"])
    assert set(found["attributes"]) <= set(FACTOR_NAMES)
    assert len(found["captions"]) == 2
    assert all("disc" in caption for caption in found["captions"])


def test_propose__plain_types_and_choices():
    found = _proposed(
        {
            "n": {"type": "integer"},
            "x": {"type": "number"},
            "b": {"type": "boolean"},
            "c": {"enum": ["p", "q"]},
            "name": {},
        }
    )
    assert (found["n"], found["x"], found["b"]) == (1, 0.5, True)
    assert found["c"] in ("p", "q")
    assert found["name"] in FACTOR_NAMES


@pytest.mark.parametrize(("least", "most", "n_items"), [(20, 20, 20), (0, 3, 3), (1, 100, 8)])
def test_propose__numbers_of_items(least, most, n_items):
    found = _proposed({"colours": {**STRINGS, "minItems": least, "maxItems": most}})
    assert len(found["colours"]) == n_items


def test_propose__nested_objects():
    inner = {"type": "object", "properties": {"name": {"type": "string"}, "values": STRINGS}}
    found = _proposed({"attributes": {"type": "array", "items": inner, "minItems": 2}})
    assert len(found["attributes"]) == 3
    assert all(set(item) == {"name", "values"} for item in found["attributes"])


def test_propose__seed_decides():
    first, second = (
        propose("x", schema={"type": "object", "properties": {"colours": STRINGS}}, seed=seed)
        for seed in (0, 1)
    )
    assert first != second
    assert first == propose(
        "x", schema={"type": "object", "properties": {"colours": STRINGS}}, seed=0
    )
