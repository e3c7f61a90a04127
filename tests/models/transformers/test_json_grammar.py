import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from weakspot.models.transformers.json_grammar import advance, is_complete, start

COLOURS = {
    "type": "object",
    "properties": {
        "colours": {"type": "array", "items": {"type": "string"}, "minItems": 1, "maxItems": 2},
        "sure": {"type": "boolean"},
    },
}


def _fits(schema, text, **options):
    state = advance(start(schema), text, **options)
    return state is not None and is_complete(state)


@pytest.mark.parametrize(
    ("schema", "text"),
    [
        (COLOURS, '{"colours": ["red"], "sure": true}'),
        (COLOURS, '{"colours":["red","dark blue"],"sure":false}'),
        ({"type": "string"}, '"größer"'),
        ({"type": "number"}, "-12.5"),
        ({"type": "number"}, "0.25"),
        ({"type": "integer"}, "7"),
        ({"type": "null"}, "null"),
        ({"enum": ["a", 3, None]}, "3"),
        ({"enum": [1, 12]}, "1"),
        ({"enum": [1, 12]}, "12"),
        ({"const": "x"}, '"x"'),
        ({"type": "array", "items": {"type": "integer"}}, "[]"),
        ({"type": "array", "items": {"type": "integer"}}, "[1, 20]"),
        ({"type": "array"}, '["a"]'),
        ({"type": "object", "additionalProperties": {"type": "integer"}}, '{"a": 1, "b":2}'),
        ({"properties": {"a": {"type": "null"}}}, '{"a":null}'),
    ],
)
def test_advance__takes_what_fits(schema, text):
    assert _fits(schema, text)
    json.loads(text)


@pytest.mark.parametrize(
    ("schema", "text"),
    [
        (COLOURS, '{"colours": []'),
        (COLOURS, '{"colours": ["a", "b", "c"'),
        (COLOURS, '{"sure": true'),
        (COLOURS, '{"colours": ["red"]}'),
        (COLOURS, ' {"colours"'),
        (COLOURS, '{"colours": ["red"], "sure": true} '),
        (COLOURS, '{"colours": ["a\n'),
        (COLOURS, '{"colours": ["a\\'),
        (COLOURS, '{"colours": [""'),
        ({"type": "string"}, '"\ufffd'),
        ({"type": "string", "maxLength": 2}, '"abc'),
        ({"type": "integer"}, "1.5"),
        ({"type": "integer"}, "01"),
        ({"type": "number"}, "--1"),
        ({"type": "number"}, "1.2.3"),
        ({"type": "number"}, ".5"),
        ({"type": "number"}, "1234567890123"),
        ({"enum": ["red"]}, '"rad'),
        ({"type": "array", "items": {"type": "integer"}}, "[1 "),
        ({"type": "array", "items": {"type": "integer"}}, "[1,]"),
    ],
)
def test_advance__refuses_what_cannot_follow(schema, text):
    assert advance(start(schema), text) is None


def test_is_complete__only_when_whole():
    assert not is_complete(advance(start(COLOURS), '{"colours": ["red"], "sure": tru'))
    assert not is_complete(advance(start({"type": "number"}), "-"))
    assert not is_complete(advance(start({"type": "number"}), "1."))


def test_advance__in_a_hurry_nothing_new_is_begun():
    begun = advance(start({"type": "array", "items": {"type": "string"}}), '["red"')
    assert advance(begun, ",") is not None
    assert advance(begun, ",", hurry=1) is None
    assert advance(begun, "]", hurry=1) == ()
    assert advance(start({"type": "array", "minItems": 2}), '["a"', hurry=1) is not None
    assert advance(start({"type": "array", "minItems": 2}), '["a","b', hurry=1) is not None


def test_advance__in_a_greater_hurry_strings_end():
    inside = advance(start({"type": "string"}), '"re')
    assert advance(inside, "d", hurry=1) is not None
    assert advance(inside, "d", hurry=2) is None
    assert advance(inside, '"', hurry=2) == ()


def test_advance__state_is_not_changed_by_trying():
    state = advance(start(COLOURS), '{"colours": ["r')
    assert advance(state, 'ed"') == advance(state, 'ed"')
    assert advance(state, "\n") is None


@given(
    st.lists(
        st.text(
            st.characters(
                codec="ascii", min_codepoint=33, max_codepoint=126, exclude_characters='"\\'
            ),
            min_size=1,
        ),
        max_size=5,
    )
)
def test_advance__piece_by_piece_is_the_same_as_at_once(words):
    schema = {"type": "array", "items": {"type": "string"}}
    text = json.dumps(words)
    state = start(schema)
    for place in range(0, len(text), 3):
        state = advance(state, text[place : place + 3])
    assert state == advance(start(schema), text) == ()
