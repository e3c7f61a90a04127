"""Labels and predictions of any form in one form."""

import numpy as np
import pytest

from weakspot.core.errors import DataError
from weakspot.project.given import check_names, label_values, named, one_form


def test_label_values__one_column_of_a_matrix__is_taken():
    assert label_values(np.array([[0], [1]]), "labels") == [0, 1]


@pytest.mark.parametrize("matrix", [np.eye(2), np.eye(2, dtype=int)])
def test_label_values__one_hot__refused_rather_than_taken_for_several_labels(matrix):
    with pytest.raises(DataError, match="argmax"):
        label_values(matrix, "labels")


def test_label_values__names_in_a_matrix__are_several_labels():
    assert label_values(np.array([["a", "b"], ["a", "c"]]), "labels") == [["a", "b"], ["a", "c"]]


def test_named__yes_and_no__are_codes_where_there_are_names():
    assert [named(value, ("no", "yes")) for value in (True, False, 1.0)] == ["yes", "no", "yes"]
    assert named(True, ()) == "True"


def test_one_form__lists_beside_single_names__refused():
    with pytest.raises(DataError, match="Labels are single names but predictions are lists"):
        one_form([["a"]], of_many=False)


@pytest.mark.parametrize(
    ("labels", "predictions", "said"),
    [
        (["cat", "dog"], ["0", "1"], "Predictions are codes"),
        (["0", "1"], ["cat", "dog"], "Labels are codes"),
        (["cat", "dog"], ["Cat", "dog"], "'Cat'. Labels are 'cat', 'dog'"),
        ([["cat"]], [["cat", "cow"]], "'cow'"),
        (["a"], list("bcdefghijk"), "and 4 more"),
    ],
)
def test_check_names__classes_that_no_label_has__refused(labels, predictions, said):
    with pytest.raises(DataError, match=said):
        check_names(labels, predictions, ())
