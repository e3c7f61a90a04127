"""Which samples are asked about which classifier."""

import numpy as np
import pytest
from tests.run.test_ledger import _data

from weakspot.core.dataset import dataset_from_columns
from weakspot.run.ledger import AskedData


def test_is_mostly__large_sets__by_marks():
    large = _data(0, 4000)
    assert large.is_mostly(_data(1000, 5000))
    assert large.is_mostly(_data(0, 900))
    assert not large.is_mostly(_data(3200, 7000))


def test_of__sample_without_an_image__is_known_by_its_key_whatever_was_predicted():
    first, second = (_data(0, 100, wrong=range(start, start + 30)) for start in (0, 50))
    assert first.marks == second.marks
    assert first.has_same_samples(second)
    assert not first.has_same_classifier(second)
    assert not first.is_mostly(second)


def test_of__several_labels__order_of_classes_makes_no_other_classifier():
    said = np.zeros((60, 2), dtype=np.bool_)
    said[:30, 0] = True
    datas = [
        AskedData.of(
            dataset_from_columns(class_names=names, label_lists=[[]] * 60, predicted_matrix=matrix),
            np.arange(60),
        )
        for names, matrix in ((["a", "b"], said), (["b", "a"], said[:, ::-1]), (["a", "b"], ~said))
    ]
    assert datas[0].digest == datas[1].digest
    assert not datas[0].has_same_classifier(datas[2])


@pytest.mark.parametrize(("n_other", "is_same"), [(0, True), (1, True), (2, True), (3, False)])
def test_has_same_classifier__few_other_answers__a_machine_rounds_otherwise(n_other, is_same):
    first, second = (_data(0, 100, wrong=range(20 + more)) for more in (0, n_other))
    assert first.has_same_classifier(second) == is_same


def test_has_same_classifier__some_samples_in_common__only_these_are_compared():
    first = _data(0, 100, wrong=range(20))
    elsewhere, shared = (_data(40, 140, wrong=wrong) for wrong in (range(60, 100), range(10)))
    assert first.is_mostly(elsewhere)
    assert first.has_same_samples(shared)
    assert not first.is_mostly(shared)


def test_has_same_classifier__labels__play_no_part():
    first, second = (_data(0, 100, wrong=range(20), labels=code) for code in (0, 1))
    assert first.digest == second.digest
