import pytest

from weakspot.core.run import CheckState
from weakspot.run.preflight.stage import check_class_counts, check_extra_classes, check_label_names


@pytest.mark.parametrize("other", ["Cat", "cat ", " CAT", "cat  "])
def test_check_label_names__spellings_of_one_class(other):
    check = check_label_names({"cat": 40, other: 2, "dog": 30})
    assert check.state is CheckState.PROBLEM
    assert f"{other!r} (2)" in check.sentence
    assert "dog" not in check.sentence


def test_check_label_names__between_words():
    assert check_label_names({"sea_lion": 4, "sea lion": 5}).state is CheckState.PROBLEM


def test_check_label_names__letters_of_two_sizes_are_two_classes():
    assert check_label_names({"a": 40, "A": 40}).state is CheckState.OK


def test_check_label_names__names_that_the_classifier_tells_apart():
    assert (
        check_label_names({"Turkey": 4, "turkey": 5}, ("Turkey", "turkey")).state is CheckState.OK
    )
    assert check_label_names({"Turkey": 4, "turkey": 5}, ("turkey",)).state is CheckState.PROBLEM


def test_check_class_counts__few():
    assert (
        check_class_counts({"a": 10, "b": 12}).sentence
        == "Every class has at least 10 evaluation samples."
    )
    check = check_class_counts({"a": 9, "b": 0, "c": 40})
    assert check.state is CheckState.NOTICE
    assert "2 of 3 classes have fewer than 10 evaluation samples (b 0, a 9)" in check.sentence


def test_check_extra_classes__named():
    assert check_extra_classes(["a", "b"], ["a", "b"]) is None
    check = check_extra_classes(["a"], ["a", "b", "c"])
    assert check.state is CheckState.NOTICE
    assert "2 classes that no sample has (b, c)" in check.sentence
