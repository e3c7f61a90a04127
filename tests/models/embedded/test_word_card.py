import json

import numpy as np

from weakspot.core.assistants import MIN_AREA
from weakspot.models.embedded.encoder import CARD_PATH, areas_of, judged, measured_areas
from weakspot.words.captions import built_in_vocabulary

CARD = json.loads(CARD_PATH.read_text(encoding="utf-8"))
ROWS = CARD["words"]


def test_card__holds_every_word_of_the_describer():
    vocabulary = built_in_vocabulary()
    listed = {row["word"] for row in ROWS}
    for words in (vocabulary.adjectives, vocabulary.looks, vocabulary.places):
        assert set(words) <= listed
    for own in vocabulary.by_ancestor.values():
        assert {*own.adjectives, *own.places} <= listed


def test_card__says_of_each_word_how_it_was_taught_and_whether_it_may_be_said():
    for row in (*ROWS, *CARD["kinds"]):
        assert row["taught"]
        assert row["may_be_said"] == (row["auc"] is not None and row["auc"] >= MIN_AREA)


def test_card__made_scenes_lifted_what_they_taught():
    areas = measured_areas()
    for word in ("on a plain background", "hidden", "single", "in a pile", "cropped", "spotted"):
        assert areas[word] >= MIN_AREA


def test_areas_of__kinds_count_where_a_kind_is_meant():
    found = areas_of(["green", "a Granny Smith", "nobody measured this"])
    assert (found[:2] >= MIN_AREA).all()
    assert np.isnan(found[2])
    assert judged(["wall clock"], np.array([0.9])).tolist() == [np.float32(0.9)]
    assert areas_of(["wall clock"])[0] < MIN_AREA


def test_card__writing_in_an_image_is_told():
    areas = measured_areas()
    for word in ("with text", "with writing", "with a label", "watermark", "date stamp"):
        assert areas[word] >= 0.9


def test_judged__what_was_measured_counts_more_than_trust():
    found = judged(["a green", "fills the frame", "nobody measured this"], np.full(3, 0.5))
    assert found.tolist() == [1.0, 0.0, 0.5]
