import pytest
from tests.web.state.conftest import at_once

from weakspot.web.problems import RefusedError
from weakspot.web.state.store import Person, Role
from weakspot.web.state.studies import (
    create_study,
    finish_class,
    invites_of,
    make_invite,
    open_or_close,
    participants,
    require_class,
    revoke_invite,
    studies_for,
    study_of,
)


def _status(state, person: Person, study_id: str | None, title: str) -> int:
    try:
        require_class(state, person, study_id, title)
    except RefusedError as error:
        return error.status
    return 200


def test_require_class__every_role__may_what_it_may(state, study, somebody):
    other = create_study(state, title="Other", classes=["disc"], instructions="").study_id
    ada, owner, viewer = somebody(), somebody("Owner", Role.OWNER), somebody("Vic", Role.VIEWER)
    places = [(None, "disc"), (study.study_id, "disc"), (study.study_id, "apple")]
    places += [(one, "disc") for one in (other, "none", "\x00")]
    for person, statuses in (
        (ada, [403, 200, 404, 404, 404, 404]),
        (owner, [200, 200, 200, 200, 404, 404]),
        (viewer, [200, 200, 200, 404, 404, 404]),
    ):
        assert [_status(state, person, *place) for place in places] == statuses
    open_or_close(state, owner, study.study_id, is_open=False)
    assert _status(state, ada, study.study_id, "disc") == 409


def test_studies_for__annotator__own_study_only(state, study, somebody):
    other = create_study(state, title="Other", classes=["disc", "disc"], instructions="")
    assert [one.study_id for one in studies_for(state, somebody())] == [study.study_id]
    assert [one.study_id for one in studies_for(state, somebody("Owner", Role.OWNER))] == [
        other.study_id,
        study.study_id,
    ]
    with pytest.raises(RefusedError):
        study_of(state, somebody(), other.study_id)


def test_finish_class__from_many_windows_at_once__is_said_once(state, study, somebody):
    ada = somebody()
    at_once(6, lambda _: finish_class(state, ada, study.study_id, "disc", is_finished=True))
    [found] = participants(state, ada, study.study_id)
    assert found.finished == ["disc"]


def test_revoke_invite__of_another_study__is_not_found(state, study, somebody):
    owner = somebody("Owner", Role.OWNER)
    made = make_invite(state, owner, study.study_id, role=Role.VIEWER, uses=1, days=1)
    with pytest.raises(RefusedError):
        revoke_invite(state, "another", made.invite.invite_id)
    assert invites_of(state, owner, study.study_id)[0].uses_left == 1
    revoked = revoke_invite(state, study.study_id, made.invite.invite_id)
    assert (revoked.uses_left, revoked.is_good) == (0, False)
