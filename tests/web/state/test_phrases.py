import threading

import pytest
from sqlalchemy import delete
from sqlalchemy.exc import IntegrityError

from weakspot.core.errors import DataError
from weakspot.web.problems import RefusedError
from weakspot.web.services.studies import PhraseFigures
from weakspot.web.state.store import PEOPLE, Role
from weakspot.web.state.studies import (
    keep_phrase,
    mark_accepted,
    open_or_close,
    phrases_of,
    report_activity,
    study_phrases,
)

SAID = {
    "class_title": "disc",
    "phrase": "green",
    "threshold": None,
    "score": 0.5,
    "held_out_score": 0.25,
}


def test_keep_phrase__said_twice__is_kept_twice_newest_first(state, study, somebody):
    ada = somebody()
    first = keep_phrase(state, ada, PhraseFigures(**SAID), study_id=study.study_id)
    second = keep_phrase(
        state, ada, PhraseFigures(**{**SAID, "phrase": "red"}), study_id=study.study_id
    )
    found = phrases_of(state, ada, study_id=study.study_id, class_title="disc")
    assert found == [second, first]
    assert (first.by, first.score, first.held_out_score, first.p_value) == ("Ada", 0.5, 0.25, None)


def test_keep_phrase__figures_that_are_no_numbers__are_null(state, study, somebody):
    odd = {
        **SAID,
        "score": float("nan"),
        "held_out_score": float("-inf"),
        "threshold": float("inf"),
    }
    kept = keep_phrase(
        state, somebody(), PhraseFigures(**odd, p_value=float("nan")), study_id=study.study_id
    )
    assert (kept.score, kept.held_out_score, kept.threshold, kept.p_value) == (
        None,
        None,
        None,
        None,
    )


@pytest.mark.parametrize("phrase", ["a\x00b", "\ud800"])
def test_keep_phrase__text_that_cannot_be_kept__is_refused(state, study, somebody, phrase):
    with pytest.raises(DataError):
        keep_phrase(
            state, somebody(), PhraseFigures(**{**SAID, "phrase": phrase}), study_id=study.study_id
        )


def test_keep_phrase__closed_study__is_refused_also_for_the_owner(state, study, somebody):
    owner = somebody("Owner", Role.OWNER)
    open_or_close(state, owner, study.study_id, is_open=False)
    for person in (owner, somebody()):
        with pytest.raises(RefusedError) as caught:
            keep_phrase(state, person, PhraseFigures(**SAID), study_id=study.study_id)
        assert caught.value.status == 409


def test_keep_phrase__many_threads__keep_everything(state, study, somebody):
    people = [somebody(f"Person {number}") for number in range(8)]

    def talk(person):
        for number in range(10):
            keep_phrase(
                state,
                person,
                PhraseFigures(**{**SAID, "phrase": f"{person.name} {number}"}),
                study_id=study.study_id,
            )
            report_activity(state, person, study.study_id, seconds=1)

    threads = [threading.Thread(target=talk, args=(person,)) for person in people]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    owner = somebody("Owner", Role.OWNER)
    kept = [one.phrase for _, one in study_phrases(state, owner, study.study_id)]
    assert sorted(kept) == sorted(
        f"{person.name} {number}" for person in people for number in range(10)
    )


def test_mark_accepted__phrase__has_its_slice(state, study, somebody):
    ada = somebody()
    kept = keep_phrase(state, ada, PhraseFigures(**SAID), study_id=study.study_id)
    mark_accepted(state, kept.phrase_id, "abc")
    assert [
        one.slice_id for one in phrases_of(state, ada, study_id=study.study_id, class_title=None)
    ] == ["abc"]


def test_phrases_of__outside_studies__are_kept_apart(state, study, somebody):
    owner = somebody("Owner", Role.OWNER)
    outside = keep_phrase(state, owner, PhraseFigures(**SAID), study_id=None)
    keep_phrase(state, owner, PhraseFigures(**SAID), study_id=study.study_id)
    assert phrases_of(state, owner, study_id=None, class_title=None) == [outside]


def test_person__with_phrases__cannot_be_deleted(state, study, somebody):
    ada = somebody()
    keep_phrase(state, ada, PhraseFigures(**SAID), study_id=study.study_id)
    with pytest.raises(IntegrityError), state.writing() as rows:
        rows.execute(delete(PEOPLE).filter_by(person_id=ada.person_id))
