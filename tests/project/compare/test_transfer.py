import numpy as np
import pytest

from weakspot.core.errors import DataError
from weakspot.generate.adversarial import transfer_matrix

NAMES = ("a", "b", "c", "d", "e")


def _answers(ranks, labels=None):
    """Answers in which the true label has these ranks, 0 for the likeliest."""
    labels = np.zeros(len(ranks), dtype=np.int64) if labels is None else np.array(labels)
    probabilities = np.zeros((len(ranks), len(NAMES)), dtype=np.float32)
    for row, (rank, label) in enumerate(zip(ranks, labels, strict=True)):
        order = [code for code in range(len(NAMES)) if code != label]
        order.insert(rank, int(label))
        probabilities[row, order] = [0.4, 0.25, 0.2, 0.1, 0.05]
    return probabilities, labels


def test_transfer_matrix__top_one_and_top_three():
    matrix = transfer_matrix(
        {
            "set": {
                "own": _answers([1, 2, 3, 4]),
                "other": _answers([0, 2, 3, 0], labels=[1, 2, 3, 4]),
            }
        },
        NAMES,
        made_for={"set": "own"},
    )
    own, other = matrix.cell("set", "own"), matrix.cell("set", "other")
    assert (own.n_images, own.n_wrong, own.n_wrong_of_top, own.is_own) == (4, 4, 2, True)
    assert (other.n_wrong, other.n_wrong_of_top, other.is_own) == (2, 1, False)
    assert matrix.rates() == ((1.0, 0.5),)
    assert matrix.rates(of_top=True) == ((0.5, 0.25),)
    assert other.interval.low < 0.5 < other.interval.high
    assert "no measurement" in matrix.notes[0]
    assert len(matrix.notes) == 1


def test_transfer_matrix__images_without_an_answer_do_not_count():
    found = _answers([1, 0, 1])
    found[0][0] = np.nan
    cell = transfer_matrix({"set": {"m": found}}, NAMES).cell("set", "m")
    assert (cell.n_images, cell.n_wrong) == (2, 1)


def test_transfer_matrix__three_classes_cannot_be_wrong_of_three():
    answers = np.array([[0.1, 0.2, 0.7]], dtype=np.float32), np.array([0])
    matrix = transfer_matrix({"set": {"m": answers}}, NAMES[:3])
    assert matrix.rates(of_top=True) == ((0.0,),)
    assert "always among the 3 likeliest" in matrix.notes[0]


def test_transfer_matrix__sets_without_the_same_classifiers_are_refused():
    with pytest.raises(DataError, match="same classifiers"):
        transfer_matrix({"one": {"m": _answers([0])}, "two": {"n": _answers([0])}}, NAMES)
    with pytest.raises(DataError, match="same classifiers"):
        transfer_matrix({}, NAMES)
