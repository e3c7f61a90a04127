import pytest

from weakspot.core.errors import DataError
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
        found = studies.answer(phrase)
        assert found == studies.answer(phrase)
        assert found.fit == fit
        assert found.score > 0.7 if fit == "good" else found.score < 0.5


def test_world__planted__wrong_ones_are_mostly_red_and_few():
    world = studies.world(did_tutorial=False)
    wrong = [words for words, is_wrong in zip(world.words, world.is_wrong, strict=True) if is_wrong]
    assert len(world.is_wrong) == studies.N_IMAGES
    assert sum("red" in words for words in wrong) == 14
    assert len(wrong) == 17


def test_image__number_that_does_not_exist__is_refused():
    with pytest.raises(DataError, match="no such image"):
        studies.image(studies.N_IMAGES)
