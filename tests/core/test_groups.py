import numpy as np
import pyarrow as pa

from weakspot.core.dataset import dataset_from_columns, group_codes, several_to_a_group


def _codes(hashes, groups=None):
    named = None if groups is None else pa.chunked_array([pa.array(groups, pa.string())])
    return group_codes(pa.chunked_array([pa.array(hashes, pa.string())]), named).tolist()


def test_group_codes__without_names_contents_are_groups():
    assert _codes(["a", "b", "a", "c"]) == [0, 1, 0, 2]
    assert _codes(["a", "b", "a", "c"], [None] * 4) == [0, 1, 0, 2]


def test_group_codes__null_is_on_its_own():
    assert _codes(["a", "b", "c", "d"], ["x", None, "x", None]) == [0, 1, 0, 2]


def test_group_codes__copies_join_groups():
    # The second and third samples are copies, so the groups x and y are one.
    assert _codes(["a", "b", "b", "c", "d"], ["x", "x", "y", "y", None]) == [0, 0, 0, 0, 1]


def test_group_codes__chain_of_copies():
    hashes = ["a", "b", "b", "c", "c", "d"]
    assert _codes(hashes, ["x", "x", "y", "y", "z", "z"]) == [0] * 6


def test_group_codes__no_samples():
    assert _codes([], []) == []


def test_several_to_a_group__none_if_all_are_single():
    assert several_to_a_group(np.array([5, 9, 2])) is None
    assert several_to_a_group(np.array([5, 9, 5])).tolist() == [0, 1, 0]


def test_dataset_groups__from_the_column_and_from_contents():
    columns = {"class_names": ["a"], "labels": [0, 0, 0], "content_hashes": ["p", "q", "q"]}
    assert dataset_from_columns(**columns).groups.tolist() == [0, 1, 1]
    dataset = dataset_from_columns(**columns, groups=["x", None, "x"])
    assert dataset.groups.tolist() == [0, 0, 0]
    assert dataset.with_groups([None, None, None]).groups.tolist() == [0, 1, 1]
    assert dataset.with_groups(["u", None, None]).groups.tolist() == [0, 1, 1]
