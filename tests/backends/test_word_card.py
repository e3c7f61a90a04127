import json

import numpy as np

from weakspot.backends.word_card import CARD_PATH, LEAST_AREA, judged, measured_areas
from weakspot.core.assistants import LEAST_TRUST
from weakspot.lexicon.vocabulary import built_in_vocabulary

ROWS = json.loads(CARD_PATH.read_text(encoding="utf-8"))["words"]


def test_card__holds_every_word_of_the_describer():
    vocabulary = built_in_vocabulary()
    listed = {row["word"] for row in ROWS}
    for words in (vocabulary.adjectives, vocabulary.looks, vocabulary.places):
        assert set(words) <= listed
    for own in vocabulary.by_ancestor.values():
        assert {*own.adjectives, *own.places} <= listed


def test_card__says_of_each_word_how_it_was_taught_and_whether_it_may_be_said():
    for row in ROWS:
        assert row["taught"]
        known = row["trust"] >= LEAST_TRUST
        assert row["may_be_said"] == (known if row["auc"] is None else row["auc"] >= LEAST_AREA)


def test_card__writing_in_an_image_is_told():
    areas = measured_areas()
    for word in ("with text", "with writing", "with a label", "watermark", "date stamp"):
        assert areas[word] >= 0.9


def test_judged__what_was_measured_counts_more_than_trust():
    found = judged(["a green", "fills the frame", "nobody measured this"], np.full(3, 0.5))
    assert found.tolist() == [1.0, 0.0, 0.5]
