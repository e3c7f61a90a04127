from concurrent.futures import ThreadPoolExecutor

import pytest
from tests.web.gate.conftest import INVITE

from weakspot.core.errors import DataError
from weakspot.web.gate.invitations import accept, invitation_with
from weakspot.web.problems import RefusedError
from weakspot.web.roles import Role
from weakspot.web.state.tables import InviteRow, StudyRow


def _accept(state, *, token=INVITE, name="Ada", login=None, password=None):
    return accept(state, token, name=name, login=login, password=password)


def test_accept__good_invitation__a_person_of_that_study(state, invite):
    study_id = invite()
    row = _accept(state, name="  Ada\x00 ")
    assert (row.name, row.role, row.study_id, row.login, row.password_hash) == ("Ada", "annotator", study_id, None, None)


def test_accept__password__can_come_back(state, invite):
    invite()
    row = _accept(state, password="long enough")
    assert row.login == "ada"
    assert row.password_hash.startswith("$argon2id$")


def test_accept__login_taken__said_and_no_use_lost(state, invite):
    invite()
    _accept(state, password="long enough")
    with pytest.raises(RefusedError, match="under this name") as refused:
        _accept(state, name="ADA", password="long enough")
    assert refused.value.status == 409
    with state.reading() as rows:
        assert rows.get(InviteRow, INVITE).uses_left == 1


@pytest.mark.parametrize(("changes", "said"), [({"days": -1.0}, "run out"), ({"uses": 0}, "used up")])
def test_accept__worn_out__said(state, invite, changes, said):
    invite(**changes)
    with pytest.raises(RefusedError, match=said) as refused:
        _accept(state)
    assert refused.value.status == 401


def test_accept__unknown__said(state, invite):
    invite()
    with pytest.raises(RefusedError, match="lets nobody in"):
        _accept(state, token="another")


def test_accept__no_name__said(state, invite):
    invite()
    with pytest.raises(DataError, match="name is needed"):
        _accept(state, name=" \x00")


def test_accept__closed_study__said(state, invite):
    study_id = invite()
    with state.writing() as rows:
        rows.get(StudyRow, study_id).is_open = False
    with pytest.raises(RefusedError, match="closed") as refused:
        _accept(state)
    assert refused.value.status == 409


def test_accept__many_at_once__as_many_as_there_are_uses(state, invite):
    invite(uses=3)

    def one(number: int) -> bool:
        try:
            _accept(state, name=f"person {number}")
        except RefusedError:
            return False
        return True

    with ThreadPoolExecutor(8) as pool:
        assert sum(pool.map(one, range(12))) == 3


def test_invitation_with__asked__nothing_is_used_up(state, invite):
    invite(uses=1, role="viewer")
    assert invitation_with(state, INVITE).role is Role.VIEWER
    assert invitation_with(state, INVITE).title == "Shapes"
