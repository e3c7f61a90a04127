from types import SimpleNamespace

import pytest

from weakspot.core.questions import spending_share
from weakspot.generate.caption_log import LOG_FILE, captions_sentence, note_captions

OF = {"generator_id": "g", "class_name": "disc", "classifier_id": "c", "seed": 0}


def test_note_captions__a_caption_keeps_the_place_of_its_first_request(tmp_path):
    store = SimpleNamespace(root=tmp_path)
    first = note_captions(store, ["a", "b"], **OF)
    second = note_captions(store, ["a", "c"], **OF)
    assert first[0]["a"] == pytest.approx(2 / spending_share(1)) == second[0]["a"]
    assert second[0]["c"] == pytest.approx(1 / spending_share(2))
    assert (first[1], second[1]) == (2, 3)
    assert note_captions(store, ["a", "c"], **OF) == second


def test_note_captions__another_seed_is_another_question(tmp_path):
    store = SimpleNamespace(root=tmp_path)
    once = note_captions(store, ["a"], **OF)
    again = note_captions(store, ["a"], **{**OF, "seed": 1})
    assert again[0]["a"] > once[0]["a"]
    assert again[1] == 2


def test_note_captions__lines_of_earlier_versions_count(tmp_path):
    old = '{"generator": "g", "class": "disc", "caption": "a"}\n'
    (tmp_path / LOG_FILE).write_text(old * 2 + "half a line\n[]\n")
    found = note_captions(SimpleNamespace(root=tmp_path), ["b"], **OF)
    assert found[1] == 2
    assert found[0]["b"] == pytest.approx(1 / spending_share(2))


def test_captions_sentence__counts_every_question_once(tmp_path):
    store = SimpleNamespace(root=tmp_path)
    assert captions_sentence(store) == ""
    note_captions(store, ["a"], **OF)
    assert captions_sentence(store).startswith("1 caption was tried on generated images")
    note_captions(store, ["a", "b"], **OF)
    note_captions(store, ["a"], **{**OF, "class_name": "star"})
    assert captions_sentence(store).startswith("3 captions were tried")
