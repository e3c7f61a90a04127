import pytest

from weakspot.core.errors import NotEnoughDataError
from weakspot.repair.strategies.pool import DeepestRepairer


def test_select__deepest_of_the_class_when_the_pool_is_labelled(make_material, make_slice, added):
    material = make_material(budget=2)
    selection = DeepestRepairer().select([make_slice()], material)
    assert added(selection, material) == "ab"
    assert selection.rows.tolist() == [0, 1, 2, 3, 4, 5, 6, 7]
    assert selection.weights.tolist() == [1.0] * 8
    assert (
        selection.note
        == "Pool samples added to the 6 training samples: 2, chosen as the deepest inside the slices."
    )


def test_select__only_members_leaves_budget_unspent_and_otherwise_the_nearest_follow(
    make_material, make_slice, added
):
    material = make_material(budget=4)
    assert added(DeepestRepairer().select([make_slice()], material), material) == "abc"
    assert (
        added(DeepestRepairer(only_members=False).select([make_slice()], material), material)
        == "abcf"
    )
    # The sample without an embedding has no depth and is never chosen.
    material = make_material(budget=99)
    assert (
        added(DeepestRepairer(only_members=False).select([make_slice()], material), material)
        == "abcfg"
    )


def test_select__unlabelled_pool_judges_the_class_without_labels(
    make_material, make_slice, hidden, added
):
    material = make_material(budget=3, labels=hidden)
    selection = DeepestRepairer().select([make_slice()], material)
    # d has not apple among its two likeliest classes, e has.
    assert added(selection, material) == "abe"
    assert "wait for a label: 3" in selection.note
    partly = [*hidden[:6], 0, 0, 0, 1, -1, 0, 0, 0]
    assert (
        added(DeepestRepairer().select([make_slice()], make_material(labels=partly)), material)
        == "abe"
    )


def test_select__budget_is_shared_equally_and_what_is_left_goes_on(
    make_material, make_slice, added
):
    slices = [make_slice("apple"), make_slice("pear")]
    for budget, expected in (
        (1, "a"),
        (2, "ae"),
        (3, "abe"),
        (4, "abde"),
        (5, "abcde"),
        (9, "abcde"),
    ):
        material = make_material(budget=budget)
        assert added(DeepestRepairer().select(slices, material), material) == expected


def test_select__balanced_weights_count_old_and_new_members(make_material, make_slice):
    material = make_material(budget=2)
    selection = DeepestRepairer(weighting="balanced").select([make_slice()], material)
    # Apples: rows 0, 6 and 7 are members and row 1 is not; both sides weigh 2 together.
    assert selection.weights == pytest.approx([2 / 3, 2.0, 1.0, 1.0, 1.0, 1.0, 2 / 3, 2 / 3])
    assert "weigh as much as the rest of their class" in selection.note


def test_select__nothing_inside_and_no_slices(make_material, make_slice, added):
    with pytest.raises(NotEnoughDataError, match="None of the 8 pool samples"):
        DeepestRepairer().select([make_slice(threshold=3.0)], make_material())
    material = make_material()
    assert added(DeepestRepairer().select([], material), material) == ""
