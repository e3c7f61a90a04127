import pytest

from weakspot.core.errors import DataError
from weakspot.core.failures import LabelHierarchy


def test_parent_codes__siblings_share_a_number():
    tree = LabelHierarchy(parents={"robin": "bird", "crow": "bird", "oak": "tree"})
    assert tree.parent_codes(("robin", "oak", "crow", "trout")).tolist() == [0, 1, 0, 2]


def test_parent_codes__a_class_that_is_the_parent_of_another():
    tree = LabelHierarchy(parents={"robin": "bird"})
    assert tree.parent_codes(("robin", "bird")).tolist() == [0, 0]


@pytest.mark.parametrize(
    "parents", [{"a": "b", "b": "a"}, {"a": "a"}, {"a": "b", "b": "c", "c": "b"}]
)
def test_label_hierarchy__circles_are_refused(parents):
    with pytest.raises(DataError, match="runs in a circle.*label 'a'"):
        LabelHierarchy(parents=parents)
