import threading

import pytest

from weakspot.core.errors import DataError
from weakspot.web.problems import RefusedError
from weakspot.web.state.store import INVITES, Person, Role, entry_of, token_hash
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
    places = [
        (None, "disc"),
        (study.study_id, "disc"),
        (study.study_id, "apple"),
        (other, "disc"),
        ("none", "disc"),
        ("\x00", "disc"),
    ]
    assert [_status(state, ada, *place) for place in places] == [403, 200, 404, 404, 404, 404]
    assert [_status(state, owner, *place) for place in places] == [200, 200, 200, 200, 404, 404]
    assert [_status(state, viewer, *place) for place in places] == [200, 200, 200, 404, 404, 404]
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


def test_create_study__title_that_cannot_be_kept__is_refused(state):
    with pytest.raises(DataError):
        create_study(state, title="a\x00", classes=[], instructions="")


def test_finish_class__from_many_windows_at_once__is_said_once(state, study, somebody):
    ada = somebody()
    done = {"is_finished": True}
    threads = [
        threading.Thread(
            target=finish_class, args=(state, ada, study.study_id, "disc"), kwargs=done
        )
        for _ in range(6)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    [found] = participants(state, ada, study.study_id)
    assert found.finished == ["disc"]


def test_make_invite__kept__is_only_the_hash(state, study, somebody):
    owner = somebody("Owner", Role.OWNER)
    made = make_invite(state, owner, study.study_id, role=Role.ANNOTATOR, uses=2, days=1)
    assert invites_of(state, owner, study.study_id) == [made.invite]
    with state.reading() as rows:
        kept = entry_of(rows, INVITES, invite_id=made.invite.invite_id)
    assert kept.token_hash == token_hash(made.token)
    assert (kept.uses, kept.uses_left, (kept.expires - kept.created).days) == (2, 2, 1)
    assert made.invite.is_good


def test_revoke_invite__of_another_study__is_not_found(state, study, somebody):
    owner = somebody("Owner", Role.OWNER)
    made = make_invite(state, owner, study.study_id, role=Role.VIEWER, uses=1, days=1)
    with pytest.raises(RefusedError):
        revoke_invite(state, "another", made.invite.invite_id)
    assert invites_of(state, owner, study.study_id)[0].uses_left == 1
    revoked = revoke_invite(state, study.study_id, made.invite.invite_id)
    assert (revoked.uses_left, revoked.is_good) == (0, False)
