import pytest

from weakspot.web.services import studies


@pytest.mark.parametrize(
    ("fit", "phrases"),
    [
        ("good", ["red", "red squares", "Crimson!", "something reddish"]),
        ("matches", ["large squares", "square", "blue", "a dark ground"]),
        ("unknown", ["banana", "", "=1+1", "\x00", "\ud800", "赤"]),
    ],
)
def test_answer__words__fit_what_was_planted(fit, phrases):
    for phrase in phrases:
        found = studies.tutorial_answer(phrase)
        assert found == studies.tutorial_answer(phrase)
        assert found.fit == fit
        assert found.score > 0.7 if fit == "good" else found.score < 0.5


def test_world__planted__wrong_ones_are_mostly_red_and_few():
    world = studies.tutorial_world(did_tutorial=False)
    wrong = [words for words, is_wrong in zip(world.words, world.is_wrong, strict=True) if is_wrong]
    assert len(world.is_wrong) == studies.N_IMAGES
    assert sum("red" in words for words in wrong) == 14
    assert len(wrong) == 17
