import csv
import io

import numpy as np
import pyarrow as pa
import pytest
from pydantic import TypeAdapter
from tests import build

from weakspot.core.errors import DataError
from weakspot.core.rules import BUILT_IN_RULES, MembershipRule, rule_class
from weakspot.words import caption_rule as module
from weakspot.words.caption_rule import (
    MAX_REMEMBERED,
    CaptionRule,
    WordFrequency,
    caption_index,
    frequency_table,
)


def _samples(captions, column="caption"):
    return build.samples([0] * len(captions), class_names=["dog"], metadata={column: captions})


def test_caption_rule__members_are_those_who_say_it__unknown_without_caption():
    samples = _samples(["dogs in the rain", "", "a dog", "heavy rains"])
    rule = CaptionRule(words="rain")
    assert rule.members(samples, samples.rows).tolist() == [True, False, False, True]
    assert rule.is_known(samples, samples.rows).tolist() == [True, False, True, True]
    assert np.array_equal(rule.scores(samples, samples.rows), [1, np.nan, 0, 1], equal_nan=True)
    assert rule.columns == {"caption"}


def test_caption_rule__stored_and_read_by_a_process_that_does_not_know_it_yet(monkeypatch):
    rule = CaptionRule(column="text", words="wet road")
    stored = TypeAdapter(MembershipRule).dump_json(rule)
    monkeypatch.delitem(BUILT_IN_RULES, "caption")
    assert rule_class("caption") is CaptionRule
    assert TypeAdapter(MembershipRule).validate_json(stored) == rule


@pytest.mark.parametrize(
    ("captions", "column", "said"),
    [([1, 2], "caption", "holds no captions"), (["a"], "text", "no metadata column 'caption'")],
)
def test_caption_rule__no_captions__says_so(captions, column, said):
    samples = _samples(captions, column)
    with pytest.raises(DataError, match=said):
        CaptionRule(words="rain").members(samples, samples.rows)


CAPTIONS = [
    "two umbrellas on a wet road",
    "an Umbrella",
    None,
    "a wet, dark road",
    "  ",
    "an Umbrella",
]
ROWS = np.arange(len(CAPTIONS))


@pytest.mark.parametrize(
    "kind", [pa.string(), pa.large_string(), pa.dictionary(pa.int32(), pa.string())]
)
def test_caption_index__words_in_any_form_and_phrases_of_neighbours(kind):
    column = pa.chunked_array([pa.array(CAPTIONS[:2]), pa.array(CAPTIONS[2:])]).cast(kind)
    index = caption_index(column)
    assert index.say("umbrella", ROWS).tolist() == [True, True, False, False, False, True]
    assert index.say("wet road", ROWS).tolist() == [True, False, False, False, False, False]
    assert index.say("unheard of", ROWS).tolist() == [False] * 6
    assert index.has_caption(ROWS).tolist() == [True, True, False, True, False, True]
    assert index.texts_of(ROWS[[1, 2]]) == ["an Umbrella", ""]


def test_caption_index__a_hyphen_joins_words_into_one():
    said = ["a lit, well-lit room", "a well near a lit, well-lit room", "a well near a lit room"]
    index = caption_index(pa.chunked_array([pa.array(said)]))
    assert index.say("lit room", ROWS[:3]).tolist() == [False, False, True]
    assert index.say("well lit", ROWS[:3]).tolist() == [False, True, False]


def test_caption_index__numbers__none():
    assert caption_index(pa.chunked_array([pa.array([1, 2])])) is None


def test_caption_index__same_column_of_another_table__is_not_read_again():
    table = pa.table({"caption": CAPTIONS})
    first = caption_index(table.column("caption"))
    assert caption_index(table.append_column("more", pa.array(ROWS)).column("caption")) is first
    assert (
        caption_index(pa.table({"caption": [*CAPTIONS[:-1], "x"]}).column("caption")) is not first
    )


def test_caption_index__few_are_remembered():
    for number in range(5):
        caption_index(pa.chunked_array([pa.array([f"number {number}"])]))
    assert len(module._indices) == MAX_REMEMBERED


def test_frequency_table__counts_and_difference_of_shares():
    one = WordFrequency(
        class_name="no dog", words="wet road", failed_with=3, n_failed=4, right_with=1, n_right=10
    )
    assert one.difference == 0.65
    (line,) = csv.DictReader(io.StringIO(frequency_table([one])))
    assert line == {
        "class": "no dog",
        "words": "wet road",
        "failed_with": "3",
        "n_failed": "4",
        "right_with": "1",
        "n_right": "10",
        "difference": "0.65",
    }
