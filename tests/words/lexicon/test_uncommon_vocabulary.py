import pytest

from weakspot.words.uncommon_vocabulary import uncommon_axes


def test_uncommon_axes__hold_the_axes_of_the_paper_and_more():
    assert {"background", "colour", "size", "pose"} <= set(uncommon_axes())
    for name, axis in uncommon_axes().items():
        assert axis.name == name
        assert "{class}" in axis.question
        lists = [axis.values, *axis.by_ancestor.values()]
        assert all(len(values) == len(set(values)) >= 5 for values in lists)
        assert axis.slot in ("adjective", "place", "look")


def test_values_for__own_kind_first_and_each_once():
    background = uncommon_axes()["background"]
    husky = background.values_for("Siberian husky", most=100)
    assert husky[: len(background.by_ancestor["animal"])] == background.by_ancestor["animal"]
    assert set(background.values) <= set(husky)
    assert len(husky) == len(set(husky))
    assert background.values_for("school bus", most=3) == background.by_ancestor["conveyance"][:3]
    assert background.values_for("qzxv", most=4) == tuple(background.values)[:4]
    assert background.values_for(None, most=4) == tuple(background.values)[:4]


def test_question_for__is_the_papers_with_the_right_article():
    assert (
        uncommon_axes()["background"].question_for("Apple")
        == "What are uncommon backgrounds that an apple can appear in?"
    )
    assert (
        uncommon_axes()["background"].question_for("oat_milk")
        == "What are uncommon backgrounds that oat milk can appear in?"
    )


@pytest.mark.parametrize(
    ("axis", "value", "phrase"),
    [
        ("background", "in a desert", "a photo of a sea lion in a desert"),
        ("colour", "orange", "a photo of an orange sea lion"),
        ("look", "oil painting", "an oil painting of a sea lion"),
    ],
)
def test_caption__puts_the_value_where_it_belongs(axis, value, phrase):
    caption = uncommon_axes()[axis].caption("sea lion", value)
    assert (caption.phrase, caption.contrast) == (phrase, value)
