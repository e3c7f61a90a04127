from collections import Counter

import pytest

from weakspot.core.dataset import Split
from weakspot.core.errors import NotEnoughDataError
from weakspot.core.run import CheckState
from weakspot.run.preflight.source_look import SourceLook, check_splits, refuse_without_evaluation

VALIDATION = ("validation",)


def _checked(n_dealt=0, used=VALIDATION, **per_split):
    return check_splits(per_split, n_dealt=n_dealt, configured=VALIDATION, used=used)


def test_check_splits__as_the_data_say():
    assert _checked(train=50, validation=30).state is CheckState.OK


def test_check_splits__dealt_here():
    check = _checked(n_dealt=100, train=50, validation=25, test=25)
    assert check.state is CheckState.NOTICE
    assert check.sentence.startswith("All 100 samples name no split")
    assert "train need not be what the classifier was trained on" in check.sentence
    assert check.settings_line == 'default_split = "validation"'
    assert _checked(n_dealt=10, train=50, validation=50).sentence.startswith("10 of 100 samples")


def test_check_splits__test_stands_in():
    check = _checked(used=("test",), train=50, test=40)
    assert check.state is CheckState.NOTICE
    assert check.settings_line == 'splits = ["test"]'


def test_check_splits__no_training():
    assert _checked(validation=40).short == "no training samples"


def _look(*, is_whole=True, **counts):
    named = {
        None if name == "none" else Split(name): Counter(a=number)
        for name, number in counts.items()
    }
    return SourceLook(counts=named, is_whole=is_whole)


def test_refuse_without_evaluation__only_training():
    with pytest.raises(
        NotEnoughDataError, match="no labelled samples in validation or test"
    ) as error:
        refuse_without_evaluation(_look(train=40, pool=3), configured=VALIDATION, where="photos")
    assert "split validation" in error.value.fix


@pytest.mark.parametrize(
    "others", [{"none": 1}, {"test": 1}, {"validation": 1}, {"is_whole": False}]
)
def test_refuse_without_evaluation__something_may_be_evaluated(others):
    refuse_without_evaluation(_look(train=40, **others), configured=VALIDATION, where="photos")
