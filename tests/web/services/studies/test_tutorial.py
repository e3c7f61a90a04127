import pytest

from weakspot.core.errors import DataError
from weakspot.web.services import studies


@pytest.mark.parametrize("phrase", ["red", "red squares", "Crimson!", "something reddish"])
def test_answer__words_for_what_was_planted__score_high(phrase):
    found = studies.answer(phrase)
    assert found.fit == "good"
    assert found.score > 0.7


@pytest.mark.parametrize("phrase", ["large squares", "square", "blue", "a dark ground"])
def test_answer__words_that_match_but_do_not_separate__score_low(phrase):
    found = studies.answer(phrase)
    assert found.fit == "matches"
    assert found.score < 0.5


@pytest.mark.parametrize("phrase", ["banana", "", "=1+1", "\x00", "\ud800", "赤"])
def test_answer__words_that_mean_nothing_here__match_nothing(phrase):
    assert studies.answer(phrase).fit == "unknown"


def test_answer__asked_twice__is_the_same():
    assert studies.answer("red") == studies.answer("red")


def test_world__planted__wrong_ones_are_mostly_red_and_few():
    world = studies.world(did_tutorial=False)
    wrong = [words for words, is_wrong in zip(world.words, world.is_wrong, strict=True) if is_wrong]
    assert len(world.is_wrong) == studies.N_IMAGES
    assert sum("red" in words for words in wrong) == 14
    assert len(wrong) == 17


def test_image__number_that_does_not_exist__is_refused():
    with pytest.raises(DataError, match="no such image"):
        studies.image(studies.N_IMAGES)
