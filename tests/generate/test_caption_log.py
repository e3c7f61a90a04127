from dataclasses import replace
from types import SimpleNamespace

import pytest

from weakspot.core.questions import spending_share
from weakspot.generate.caption_log import LOG_FILE, AskedOf, captions_sentence, note_captions

OF = AskedOf(generator_id="g", class_name="disc", classifier_id="c", seed=0)


def test_note_captions__a_caption_keeps_the_place_of_its_first_request(tmp_path):
    store = SimpleNamespace(root=tmp_path)
    first = note_captions(store, OF, ["a", "b"])
    second = note_captions(store, OF, ["a", "c"])
    assert first.prices["a"] == pytest.approx(2 / spending_share(1)) == second.prices["a"]
    assert second.prices["c"] == pytest.approx(1 / spending_share(2))
    assert (first.n_looks, second.n_looks) == (2, 3)
    assert note_captions(store, OF, ["a", "c"]) == second


def test_note_captions__another_seed_is_another_question(tmp_path):
    store = SimpleNamespace(root=tmp_path)
    once = note_captions(store, OF, ["a"])
    again = note_captions(store, replace(OF, seed=1), ["a"])
    assert again.prices["a"] > once.prices["a"]
    assert again.n_looks == 2


def test_note_captions__lines_of_earlier_versions_count(tmp_path):
    old = '{"generator": "g", "class": "disc", "caption": "a"}\n'
    (tmp_path / LOG_FILE).write_text(old * 2 + "half a line\n[]\n")
    found = note_captions(SimpleNamespace(root=tmp_path), OF, ["b"])
    assert found.n_looks == 2
    assert found.prices["b"] == pytest.approx(1 / spending_share(2))


def test_captions_sentence__counts_every_question_once(tmp_path):
    store = SimpleNamespace(root=tmp_path)
    assert captions_sentence(store) == ""
    note_captions(store, OF, ["a"])
    assert captions_sentence(store).startswith("1 caption was tried on generated images")
    note_captions(store, OF, ["a", "b"])
    note_captions(store, replace(OF, class_name="star"), ["a"])
    assert captions_sentence(store).startswith("3 captions were tried")
