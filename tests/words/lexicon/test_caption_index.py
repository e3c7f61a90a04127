import numpy as np
import pyarrow as pa
import pytest

from weakspot.words import caption_rule as module
from weakspot.words.caption_rule import MAX_REMEMBERED, caption_index

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


def test_caption_index__rows_in_any_order():
    index = caption_index(pa.chunked_array([pa.array(CAPTIONS)]))
    assert index.say("umbrella", ROWS[::-1]).tolist() == [True, False, False, False, True, True]
    assert index.say("umbrella", ROWS[:0]).shape == (0,)


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
