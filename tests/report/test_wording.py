from weakspot.core.failures import Side
from weakspot.core.rules import ColumnRule
from weakspot.core.slices import DataUse, FailureSlice
from weakspot.report import wording


def _unnamed(**changes):
    use = DataUse(name="given", n_samples=0, digest="given")
    return FailureSlice(class_name="apple", rule=ColumnRule(column="green"), method="hand", found_on=use, **changes)


def test_slice_words__without_a_name():
    assert wording.slice_words(_unnamed()) == "one kind of “apple” pictures, for which no words were found,"


def test_class_words__side_of_a_multi_label_class():
    assert wording.class_words(_unnamed(side=Side.ABSENT)) == "pictures without apple"
    assert wording.class_words(_unnamed(side=Side.PRESENT)) == "“apple” pictures"


def test_arm_name__strangers_keep_theirs():
    assert wording.arm_name("random") == "random choice"
    assert wording.arm_name("acme/other") == "acme/other"


def test_points__small_changes_are_zero():
    assert [wording.points(value) for value in (0.004, -0.004, 0.006, -0.5)] == ["±0", "±0", "+1", "−50"]
