import threading
from datetime import timedelta

import pytest
from sqlalchemy import update

from weakspot.web.problems import RefusedError
from weakspot.web.state.store import ACTIVITY, PEOPLE, now
from weakspot.web.state.studies import own_figures, report_activity, seconds_by_class


def _came(state, person, *, ago: float) -> None:
    with state.writing() as rows:
        rows.execute(
            update(PEOPLE)
            .filter_by(person_id=person.person_id)
            .values(created=now() - timedelta(seconds=ago))
        )


def test_report_activity__honest_stretches__add_up_by_class(state, study, somebody):
    ada = somebody()
    _came(state, ada, ago=100)
    assert report_activity(state, ada, study.study_id, seconds=15, class_title="disc") == 15
    with state.writing() as rows:
        rows.execute(update(ACTIVITY).values(created=now() - timedelta(seconds=20)))
    assert report_activity(state, ada, study.study_id, seconds=10, class_title="square") == 25
    assert seconds_by_class(state, study.study_id) == {
        (ada.person_id, "disc"): 15,
        (ada.person_id, "square"): 10,
    }
    assert own_figures(state, ada, study.study_id) == (25, 0)


def test_report_activity__claimed_from_many_windows_at_once__is_never_more_than_the_clock(
    state, study, somebody
):
    ada = somebody()
    _came(state, ada, ago=30)
    start = now()
    threads = [
        threading.Thread(
            target=report_activity, args=(state, ada, study.study_id), kwargs={"seconds": 60}
        )
        for _ in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    passed = (now() - start).total_seconds()
    assert 30 <= own_figures(state, ada, study.study_id)[0] <= 30 + passed + 1


def test_report_activity__clock_set_back__counts_nothing(state, study, somebody):
    ada = somebody()
    _came(state, ada, ago=-3600)
    assert report_activity(state, ada, study.study_id, seconds=15) == 0


def test_report_activity__another_study__is_refused(state, somebody):
    with pytest.raises(RefusedError) as caught:
        report_activity(state, somebody(), "another", seconds=1)
    assert caught.value.status == 404
