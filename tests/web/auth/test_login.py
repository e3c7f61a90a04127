from concurrent.futures import ThreadPoolExecutor

import pytest
from sqlalchemy import update
from tests.web.auth.conftest import INVITE

from weakspot.core.errors import DataError
from weakspot.web.auth.address import ServerAddress
from weakspot.web.auth.login import (
    FREE_FAILURES,
    Login,
    accept,
    invitation_with,
    set_owner_password,
)
from weakspot.web.problems import RefusedError
from weakspot.web.state.store import INVITES, PEOPLE, STUDIES, Role, entry_of


def _accept(state, *, token=INVITE, name="Ada", login=None, password=None):
    return accept(state, token, name=name, login=login, password=password)


@pytest.mark.parametrize(
    ("password", "login", "hashed"),
    [(None, None, None), ("long enough", "ada", "$argon2id$")],
    ids=["without a password", "to come back with"],
)
def test_accept__good_invitation__a_person_of_that_study(state, invite, password, login, hashed):
    study_id = invite()
    person = _accept(state, name="  Ada\x00 ", password=password)
    assert (person.name, person.role, person.study_id) == ("Ada", Role.ANNOTATOR, study_id)
    with state.reading() as rows:
        kept = entry_of(rows, PEOPLE, person_id=person.person_id)
    assert kept.login == login
    assert (kept.password_hash and kept.password_hash[:10]) == hashed


def test_accept__login_taken__said_and_no_use_lost(state, invite):
    invite()
    _accept(state, password="long enough")
    with pytest.raises(RefusedError, match="name is taken") as refused:
        _accept(state, name="ADA", password="long enough")
    assert refused.value.status == 409
    with state.reading() as rows:
        assert entry_of(rows, INVITES, invite_id=INVITE).uses_left == 1


@pytest.mark.parametrize(
    ("changes", "said"), [({"days": -1.0}, "run out"), ({"uses": 0}, "used up")]
)
def test_accept__worn_out__said(state, invite, changes, said):
    invite(**changes)
    with pytest.raises(RefusedError, match=said) as refused:
        _accept(state)
    assert refused.value.status == 401


def test_accept__unknown__said(state, invite):
    invite()
    with pytest.raises(RefusedError, match="is invalid"):
        _accept(state, token="another")


def test_accept__no_name__said(state, invite):
    invite()
    with pytest.raises(DataError, match="name is needed"):
        _accept(state, name=" \x00")


def test_accept__closed_study__said(state, invite):
    study_id = invite()
    with state.writing() as rows:
        rows.execute(update(STUDIES).filter_by(study_id=study_id).values(is_open=False))
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


TOKEN = "the-owners-token"
HERE = "127.0.0.1"


def _login(state, **changes) -> Login:
    return Login(
        state=state, owner_token=changes.pop("token", TOKEN), address=ServerAddress(), **changes
    )


def _refused(call, *arguments, **keywords) -> RefusedError:
    with pytest.raises(RefusedError) as refused:
        call(*arguments, **keywords)
    return refused.value


def test_sign_in_with_token__right_and_wrong(state):
    login = _login(state)
    assert login.sign_in_with_token(TOKEN, client=HERE)[1].role is Role.OWNER
    assert _refused(login.sign_in_with_token, TOKEN + "x", client=HERE).status == 401


def test_sign_in_with_token__server_without_token__nobody(state):
    assert _refused(_login(state, token="").sign_in_with_token, "", client=HERE).status == 401


def test_token_for_once__works_once(state):
    login = _login(state)
    token = login.token_for_once()
    assert login.sign_in_with_token(token, client=HERE)[1].role is Role.OWNER
    assert _refused(login.sign_in_with_token, token, client=HERE).status == 401


def test_sign_in_with_token__many_wrong_ones__have_to_wait(state):
    login = _login(state)
    refusals = [_refused(login.sign_in_with_token, "wrong", client=HERE) for _ in range(11)]
    assert [one.status for one in refusals] == [401] * 10 + [429]
    assert refusals[-1].retry_after is not None
    assert login.sign_in_with_token(TOKEN, client="5.6.7.8")[1].role is Role.OWNER


def test_sign_in_with_token__many_right_ones__never_wait(state):
    login = _login(state)
    opened = [login.sign_in_with_token(TOKEN, client=HERE) for _ in range(30)]
    assert {person.role for _, person in opened} == {Role.OWNER}
    assert len({token for token, _ in opened}) == len(opened)


def test_sign_in_with_password__right_wrong_and_unknown(state):
    set_owner_password(state, "Ada", "long enough")
    login = _login(state)
    assert login.sign_in_with_password("ada", "long enough", client=HERE)[1].name == "Ada"
    wrong = _refused(login.sign_in_with_password, "ada", "long enougg", client=HERE)
    unknown = _refused(login.sign_in_with_password, "bob\x00", "long enough", client=HERE)
    assert (
        (wrong.status, wrong.what)
        == (unknown.status, unknown.what)
        == (401, "Name or password is wrong.")
    )


def test_sign_in_with_password__guessing__locked_out_even_with_the_right_one(state):
    set_owner_password(state, "Ada", "long enough")
    login = _login(state)
    for _ in range(FREE_FAILURES):
        assert _refused(login.sign_in_with_password, "Ada", "a guess", client=HERE).status == 401
    locked = _refused(login.sign_in_with_password, "ADA", "long enough", client=HERE)
    assert locked.status == 429
    assert locked.retry_after == 10
    assert login.sign_in_with_password("Ada", "long enough", client="5.6.7.8")[1].name == "Ada"


def test_sign_in_with_invitation__then_with_password(state, invite):
    study_id = invite()
    login = _login(state)
    assert login.invitation(INVITE, client=HERE).study_id == study_id
    invited = login.sign_in_with_invitation(
        INVITE, client=HERE, name="Bob", password="long enough"
    )[1]
    assert (invited.role, invited.study_id) == (Role.ANNOTATOR, study_id)
    assert login.sign_in_with_password("bob", "long enough", client=HERE)[1] == invited


def test_sign_in_with_invitation__read_only__refused(state, invite):
    invite()
    assert (
        _refused(
            _login(state, is_read_only=True).sign_in_with_invitation,
            INVITE,
            client=HERE,
            name="Bob",
        ).status
        == 403
    )
