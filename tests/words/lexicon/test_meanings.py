import pytest

from weakspot.words.meanings import are_near, says_more


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("with a label", "with a watermark"),
        ("boat", "ship"),
        ("boat", "vessel"),
        ("yellow", "golden"),
        ("on the grass", "on a grassy background"),
        ("green", "green"),
    ],
)
def test_are_near__either_may_stand_for_the_other(one, other):
    assert are_near(one, other)
    assert are_near(other, one)


@pytest.mark.parametrize(
    ("one", "other"),
    [("truck", "ship"), ("red", "blue"), ("red", "orange"), ("dark", "bright"), ("horse", "running"), ("painting", "pixelated")],
)  # fmt: skip
def test_are_near__rivals(one, other):
    assert not are_near(one, other)
    assert not are_near(other, one)


def test_says_more__one_way_only():
    assert says_more("sketch", "bright")
    assert not says_more("bright", "sketch")
    assert not says_more("sketch", "sketch")
