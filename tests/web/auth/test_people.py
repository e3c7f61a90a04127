import pytest
from sqlalchemy import func, select

from weakspot.core.errors import ConfigError
from weakspot.web.auth.login import (
    Sessions,
    add_person,
    clean_name,
    has_owner_with_password,
    hash_password,
    is_right,
    login_of,
    person_by_login,
    person_of_row,
    set_owner_password,
)
from weakspot.web.state.store import PEOPLE, SESSIONS, Role


def test_clean_name__what_cannot_be_seen__left_out():
    assert clean_name("\u202eAda\x00\ud800 \t Lovelace ") == "Ada Lovelace"
    assert clean_name("\x00\n") == ""


def test_login_of__look_alikes__the_same():
    assert login_of(" ADA ") == login_of("ａｄａ") == "ada"


def test_set_owner_password__new_owner__can_come_in(state):
    assert not has_owner_with_password(state)
    assert set_owner_password(state, " Ada ", "long enough") == "Ada"
    assert has_owner_with_password(state)
    with state.reading() as rows:
        row = person_by_login(rows, "ADA")
    assert row is not None
    assert is_right("long enough", row.password_hash)


def test_set_owner_password__changed__old_browsers_are_out(state):
    set_owner_password(state, "Ada", "long enough")
    with state.writing() as rows:
        row = person_by_login(rows, "ada")
        assert row is not None
        Sessions(state).open(rows, person_of_row(row))
    set_owner_password(state, "ada", "another one")
    with state.reading() as rows:
        assert rows.scalar(select(func.count()).select_from(SESSIONS)) == 0
        assert rows.scalar(select(func.count()).select_from(PEOPLE)) == 1


def test_set_owner_password__name_of_an_annotator__said(state):
    with state.writing() as rows:
        add_person(rows, name="Ada", login="ada", role=Role.ANNOTATOR)
    with pytest.raises(ConfigError, match="was invited"):
        set_owner_password(state, "Ada", "long enough")


def test_set_owner_password__empty_name__said(state):
    with pytest.raises(ConfigError, match="needs a name"):
        set_owner_password(state, "\x00", "long enough")


def test_hashed__right_and_wrong__told_apart():
    kept = hash_password("correct horse")
    assert kept.startswith("$argon2id$")
    assert is_right("correct horse", kept)
    assert not is_right("correct horsf", kept)


def test_is_right__nobody_of_that_name__no():
    assert not is_right("the password of nobody", None)


def test_is_right__damaged_hash__no():
    assert not is_right("x", "not a hash")


@pytest.mark.parametrize("password", ["short", "x" * 1001])
def test_hashed__unfit__said(password):
    with pytest.raises(ConfigError, match="8 to 1000"):
        hash_password(password)
