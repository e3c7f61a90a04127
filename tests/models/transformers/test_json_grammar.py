import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from weakspot.models.transformers.text import is_whole, may_follow, pattern_of

COLOURS = {
    "type": "object",
    "properties": {
        "colours": {"type": "array", "items": {"type": "string"}, "minItems": 1, "maxItems": 2},
        "sure": {"type": "boolean"},
    },
}


def _follows(schema, text, piece="", **options):
    return may_follow(pattern_of(schema), text, piece, **options)


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
def test_may_follow__takes_what_fits_in_any_pieces(schema, text):
    assert is_whole(pattern_of(schema), text)
    assert all(_follows(schema, text[:place], text[place:]) for place in range(len(text)))
    assert all(_follows(schema, text[:place]) for place in range(len(text)))
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
def test_may_follow__refuses_what_cannot(schema, text):
    assert not _follows(schema, "", text)


@pytest.mark.parametrize(
    ("schema", "text"),
    [
        (COLOURS, '{"colours": ["red"], "sure": tru'),
        ({"type": "number"}, "-"),
        ({"type": "number"}, "1."),
    ],
)
def test_is_whole__only_when_nothing_is_missing(schema, text):
    assert _follows(schema, text)
    assert not is_whole(pattern_of(schema), text)


TEXTS, TWO = {"type": "array", "items": {"type": "string"}}, {"type": "array", "minItems": 2}


@pytest.mark.parametrize(
    ("schema", "text", "piece", "hurry", "follows"),
    [
        (TEXTS, '["red"', ",", 0, True),
        (TEXTS, '["red"', ",", 1, False),
        (TEXTS, '["re', 'd",', 1, False),
        (TEXTS, '["red"', "]", 1, True),
        (TWO, '["a"', ",", 1, True),
        (TWO, '["a","b', "c", 1, True),
        ({"type": "string"}, '"re', "d", 1, True),
        ({"type": "string"}, '"re', "d", 2, False),
        ({"type": "string"}, '"re', '"', 2, True),
    ],
)
def test_may_follow__in_a_hurry_nothing_new_is_begun_and_strings_end(
    schema, text, piece, hurry, follows
):
    assert _follows(schema, text, piece, hurry=hurry) is follows


LETTERS = st.characters(
    codec="ascii", min_codepoint=33, max_codepoint=126, exclude_characters='"\\'
)


@given(st.lists(st.text(LETTERS, min_size=1), max_size=5))
def test_may_follow__any_words(words):
    text = json.dumps(words)
    assert is_whole(pattern_of(TEXTS), text)
    assert all(_follows(TEXTS, text[:place], text[place : place + 3]) for place in range(len(text)))
