"""Which class a class is taken for."""

import numpy as np
import pytest

from weakspot.core.statistics import fisher_p
from weakspot.verify.classes import ask_confused


def test_ask_confused__names_the_pair_and_the_reverse(make_material, birds):
    birds |= {"gull": {"gull": 32, "heron": 8, "owl": 8, "crane": 4}}
    birds |= {"owl": {"owl": 32, "heron": 8, "gull": 8, "crane": 4}}
    found = {one.class_name: one for one in ask_confused(make_material(birds), least=5)}
    heron = found["heron"]
    assert (heron.other_class, heron.n_failed, heron.rate) == ("crane", 44, 44 / 52)
    assert heron.p_value == pytest.approx(3 * fisher_p(44, 48, 8, 24))
    assert "44 of its 48 wrong answers" in heron.sentence
    assert heron.sentence.endswith("the reverse 2 of 52")
    assert min(found[name].p_value for name in ("crane", "gull", "owl")) > 0.05


def test_ask_confused__a_class_that_everything_is_taken_for_is_no_confusion(make_material):
    answers = {
        "a": {"a": 40, "junk": 30, "b": 2, "c": 2},
        "b": {"b": 40, "junk": 30, "a": 2, "c": 2},
        "c": {"c": 40, "junk": 30, "a": 2, "b": 2},
        "junk": {"junk": 70, "a": 1, "b": 1, "c": 1},
    }
    assert min(one.p_value for one in ask_confused(make_material(answers), least=5)) > 0.05


def test_ask_confused__an_even_spread_is_no_confusion_whatever_the_others_do(make_material):
    answers = {
        "a": {"a": 40, "b": 20, "c": 20},
        "b": {"b": 80},
        "c": {"c": 40, "a": 40},
    }
    found = {one.class_name: one for one in ask_confused(make_material(answers), least=5)}
    assert found["a"].p_value > 0.05


def test_ask_confused__two_classes__nothing_to_ask(make_material):
    assert ask_confused(make_material({"a": {"a": 5, "b": 20}, "b": {"b": 25}}), least=5) == []


def test_ask_confused__wrong_answers_that_go_to_a_large_class_are_no_confusion(make_material):
    answers = {
        "a": {"a": 50, "large": 20, "c": 2},
        "large": {"large": 900, "a": 50, "c": 50},
        "c": {"c": 50, "large": 20, "a": 2},
    }
    found = ask_confused(make_material(answers), least=5)
    assert min(one.p_value for one in found) > 0.05


def test_ask_confused__answers_that_a_failing_class_lacks_are_no_confusion_of_the_others(
    make_material,
):
    # "b" is hardly ever answered rightly, so its share of answers is small; the others' wrong answers are spread evenly.
    names = "abcdef"
    answers = {
        name: {name: 80, **{other: 20 for other in names if other != name}} for name in names
    }
    answers["b"] = {"b": 0, **{other: 36 for other in names if other != "b"}}
    found = {one.class_name: one for one in ask_confused(make_material(answers), least=5)}
    assert found["a"].p_value > 0.05


def test_ask_confused__is_corrected_for_every_class_that_could_be_answered(make_material):
    answers = {
        "a": {"a": 20, "b": 9},
        "b": {"b": 30},
        "c": {"c": 30, "d": 6},
        "d": {"d": 30, "c": 6},
    }
    few = ask_confused(make_material(answers), least=5)[0]
    wide = make_material(answers | {f"x{number}": {} for number in range(20)})
    many = ask_confused(wide, least=5)[0]
    assert np.isclose(many.p_value, min(1.0, few.p_value * 23 / 3))


def test_ask_confused__images_of_one_object_count_once(make_material):
    answers = {"a": {"a": 20, "b": 12}, "b": {"b": 40}, "c": {"c": 40, "d": 9}, "d": {"d": 40}}
    groups = [*[None] * 20, *["one"] * 12, *[None] * 129]
    alone = ask_confused(make_material(answers), least=5)[0]
    grouped = ask_confused(make_material(answers, groups=groups), least=5)[0]
    assert alone.p_value < 0.001
    assert grouped.p_value > 0.2
