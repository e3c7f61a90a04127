import pytest
from tests.web.gate.conftest import INVITE

from weakspot.web.gate.address import ServerAddress
from weakspot.web.gate.entering import Door
from weakspot.web.gate.lockouts import FREE_FAILURES
from weakspot.web.gate.people import set_owner_password
from weakspot.web.problems import RefusedError
from weakspot.web.roles import Role

TOKEN = "the-owners-token"
HERE = "127.0.0.1"


def _door(state, **changes) -> Door:
    return Door(state=state, owner_token=changes.pop("token", TOKEN), address=ServerAddress(), **changes)


def _refused(call, *arguments, **keywords) -> RefusedError:
    with pytest.raises(RefusedError) as refused:
        call(*arguments, **keywords)
    return refused.value


def test_enter_with_token__right_and_wrong(state):
    door = _door(state)
    assert door.enter_with_token(TOKEN, client=HERE).person.role is Role.OWNER
    assert _refused(door.enter_with_token, TOKEN + "x", client=HERE).status == 401


def test_enter_with_token__server_without_token__nobody(state):
    assert _refused(_door(state, token="").enter_with_token, "", client=HERE).status == 401


def test_token_for_once__works_once(state):
    door = _door(state)
    token = door.token_for_once()
    assert door.enter_with_token(token, client=HERE).person.role is Role.OWNER
    assert _refused(door.enter_with_token, token, client=HERE).status == 401


def test_enter_with_token__many_wrong_ones__have_to_wait(state):
    door = _door(state)
    refusals = [_refused(door.enter_with_token, "wrong", client=HERE) for _ in range(11)]
    assert [one.status for one in refusals] == [401] * 10 + [429]
    assert refusals[-1].retry_after is not None
    assert door.enter_with_token(TOKEN, client="5.6.7.8").person.role is Role.OWNER


def test_enter_with_token__many_right_ones__never_wait(state):
    door = _door(state)
    for _ in range(30):
        door.enter_with_token(TOKEN, client=HERE)


def test_enter_with_password__right_wrong_and_unknown(state):
    set_owner_password(state, "Ada", "long enough")
    door = _door(state)
    assert door.enter_with_password("ada", "long enough", client=HERE).person.name == "Ada"
    wrong = _refused(door.enter_with_password, "ada", "long enougg", client=HERE)
    unknown = _refused(door.enter_with_password, "bob\x00", "long enough", client=HERE)
    assert (wrong.status, wrong.what) == (unknown.status, unknown.what) == (401, "This name and password let nobody in.")


def test_enter_with_password__guessing__locked_out_even_with_the_right_one(state):
    set_owner_password(state, "Ada", "long enough")
    door = _door(state)
    for _ in range(FREE_FAILURES):
        assert _refused(door.enter_with_password, "Ada", "a guess", client=HERE).status == 401
    locked = _refused(door.enter_with_password, "ADA", "long enough", client=HERE)
    assert locked.status == 429
    assert locked.retry_after == 10
    assert door.enter_with_password("Ada", "long enough", client="5.6.7.8").person.name == "Ada"


def test_enter_with_invitation__then_with_password(state, invite):
    study_id = invite()
    door = _door(state)
    assert door.invitation(INVITE, client=HERE).study_id == study_id
    invited = door.enter_with_invitation(INVITE, client=HERE, name="Bob", password="long enough").person
    assert (invited.role, invited.study_id) == (Role.ANNOTATOR, study_id)
    assert door.enter_with_password("bob", "long enough", client=HERE).person == invited


def test_enter_with_invitation__read_only__refused(state, invite):
    invite()
    assert _refused(_door(state, is_read_only=True).enter_with_invitation, INVITE, client=HERE, name="Bob").status == 403
