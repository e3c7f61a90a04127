import pytest
from sqlalchemy import delete
from sqlalchemy.exc import IntegrityError
from tests.web.state.conftest import at_once

from weakspot.core.errors import DataError
from weakspot.web.problems import RefusedError
from weakspot.web.services.studies import PhraseFigures
from weakspot.web.state.store import PEOPLE, Role
from weakspot.web.state.studies import (
    keep_phrase,
    open_or_close,
    phrases_of,
    report_activity,
    study_phrases,
)

SAID = PhraseFigures(
    class_title="disc", phrase="green", threshold=None, score=0.5, held_out_score=0.25
)


def _said(**changes) -> PhraseFigures:
    return SAID.model_copy(update=changes)


def test_keep_phrase__said_twice__is_kept_twice_newest_first(state, study, somebody):
    ada = somebody()
    first = keep_phrase(state, ada, SAID, study_id=study.study_id)
    second = keep_phrase(state, ada, _said(phrase="red"), study_id=study.study_id)
    found = phrases_of(state, ada, study_id=study.study_id, class_title="disc")
    assert found == [second, first]
    assert (first.by, first.score, first.held_out_score, first.p_value) == ("Ada", 0.5, 0.25, None)


def test_keep_phrase__figures_that_are_no_numbers__are_null(state, study, somebody):
    names = ("score", "held_out_score", "threshold", "p_value")
    odd = dict(zip(names, map(float, ("nan", "-inf", "inf", "nan")), strict=True))
    kept = keep_phrase(state, somebody(), _said(**odd), study_id=study.study_id)
    assert [getattr(kept, name) for name in names] == [None] * 4


@pytest.mark.parametrize("phrase", ["a\x00b", "\ud800"])
def test_keep_phrase__text_that_cannot_be_kept__is_refused(state, study, somebody, phrase):
    with pytest.raises(DataError):
        keep_phrase(state, somebody(), _said(phrase=phrase), study_id=study.study_id)


def test_keep_phrase__closed_study__is_refused_also_for_the_owner(state, study, somebody):
    owner = somebody("Owner", Role.OWNER)
    open_or_close(state, owner, study.study_id, is_open=False)
    for person in (owner, somebody()):
        with pytest.raises(RefusedError) as caught:
            keep_phrase(state, person, SAID, study_id=study.study_id)
        assert caught.value.status == 409


def test_keep_phrase__many_threads__keep_everything(state, study, somebody):
    people = [somebody(f"Person {number}") for number in range(8)]

    def talk(place: int) -> None:
        for number in range(10):
            said = _said(phrase=f"{people[place].name} {number}")
            keep_phrase(state, people[place], said, study_id=study.study_id)
            report_activity(state, people[place], study.study_id, seconds=1)

    at_once(8, talk)
    owner = somebody("Owner", Role.OWNER)
    kept = [one.phrase for _, one in study_phrases(state, owner, study.study_id)]
    assert sorted(kept) == sorted(f"{one.name} {number}" for one in people for number in range(10))


def test_phrases_of__outside_studies__are_kept_apart(state, study, somebody):
    owner = somebody("Owner", Role.OWNER)
    outside = keep_phrase(state, owner, SAID, study_id=None)
    keep_phrase(state, owner, SAID, study_id=study.study_id)
    assert phrases_of(state, owner, study_id=None, class_title=None) == [outside]


def test_person__with_phrases__cannot_be_deleted(state, study, somebody):
    ada = somebody()
    keep_phrase(state, ada, SAID, study_id=study.study_id)
    with pytest.raises(IntegrityError), state.writing() as rows:
        rows.execute(delete(PEOPLE).filter_by(person_id=ada.person_id))
