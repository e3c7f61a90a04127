import pytest

from weakspot.core.run import CheckState
from weakspot.run.preflight.stage import check_class_counts, check_extra_classes, check_label_names


@pytest.mark.parametrize("other", ["Cat", "cat ", " CAT", "cat  "])
def test_check_label_names__spellings_of_one_class(other):
    check = check_label_names({"cat": 40, other: 2, "dog": 30})
    assert check.state is CheckState.PROBLEM
    assert f"{other!r} (2)" in check.sentence
    assert "dog" not in check.sentence


@pytest.mark.parametrize(
    ("labels", "known", "state"),
    [
        ({"sea_lion": 4, "sea lion": 5}, (), CheckState.PROBLEM),
        ({"a": 40, "A": 40}, (), CheckState.OK),
        ({"Turkey": 4, "turkey": 5}, ("Turkey", "turkey"), CheckState.OK),
        ({"Turkey": 4, "turkey": 5}, ("turkey",), CheckState.PROBLEM),
    ],
)
def test_check_label_names__unless_the_classifier_tells_them_apart(labels, known, state):
    assert check_label_names(labels, known).state is state


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
