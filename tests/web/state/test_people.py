from datetime import timedelta

from sqlalchemy import update
from tests.web.state.conftest import at_once

from weakspot.web.state.store import ACTIVITY, PEOPLE, now
from weakspot.web.state.studies import own_figures, report_activity, seconds_by_class


def _came(state, person, *, ago: float) -> None:
    with state.writing() as rows:
        own = update(PEOPLE).filter_by(person_id=person.person_id)
        rows.execute(own.values(created=now() - timedelta(seconds=ago)))


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
    at_once(8, lambda _: report_activity(state, ada, study.study_id, seconds=60))
    passed = (now() - start).total_seconds()
    assert 30 <= own_figures(state, ada, study.study_id)[0] <= 30 + passed + 1


def test_report_activity__clock_set_back__counts_nothing(state, study, somebody):
    ada = somebody()
    _came(state, ada, ago=-3600)
    assert report_activity(state, ada, study.study_id, seconds=15) == 0
