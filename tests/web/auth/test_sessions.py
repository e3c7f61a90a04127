from datetime import timedelta

from sqlalchemy import func, select, update

from weakspot.web.auth.login import (
    LIFETIME,
    REMEMBERED_SECONDS,
    SEEN_AGAIN_AFTER,
    Sessions,
    csrf_token_of,
    the_owner,
)
from weakspot.web.state.store import SESSIONS, now, token_hash


class Clock:
    seconds = 0.0

    def __call__(self) -> float:
        return self.seconds


def _opened(state, sessions):
    with state.writing() as rows:
        return sessions.open(rows, the_owner(rows))


def _change(state, token, **changes):
    with state.writing() as rows:
        own = update(SESSIONS).filter_by(token_hash=token_hash(token))
        assert rows.execute(own.values(**changes)).rowcount == 1


def test_open__token__only_its_hash_is_kept(state):
    token, _person = _opened(state, Sessions(state))
    with state.reading() as rows:
        row = rows.execute(select(SESSIONS)).one()
    assert not {token, csrf_token_of(token)} & {row.token_hash, row.person_id}


def test_person_with__known_and_unknown(state):
    sessions = Sessions(state)
    token, person = _opened(state, sessions)
    assert sessions.person_with(token) == person
    assert sessions.person_with("another") is None


def test_person_with__expired__nobody(state):
    sessions = Sessions(state)
    token, _person = _opened(state, sessions)
    _change(state, token, expires=now() - timedelta(seconds=1))
    assert sessions.person_with(token) is None


def test_person_with__seen_after_a_while__lasts_longer(state):
    sessions = Sessions(state)
    token, _person = _opened(state, sessions)
    _change(
        state,
        token,
        last_seen=now() - 2 * SEEN_AGAIN_AFTER,
        expires=now() + timedelta(hours=1),
    )
    sessions.person_with(token)
    with state.reading() as rows:
        assert rows.execute(select(SESSIONS)).one().expires > now() + LIFETIME - timedelta(
            minutes=1
        )


def test_remembered__moments_only(state):
    clock = Clock()
    sessions = Sessions(state, clock=clock)
    token, person = _opened(state, sessions)
    assert sessions.recall(token) is None
    sessions.person_with(token)
    assert sessions.recall(token) == person
    clock.seconds = REMEMBERED_SECONDS
    assert sessions.recall(token) is None


def test_close__at_once_nobody(state):
    sessions = Sessions(state)
    token, _person = _opened(state, sessions)
    sessions.person_with(token)
    assert sessions.close(token)
    assert sessions.recall(token) is None
    assert sessions.person_with(token) is None
    assert not sessions.close(token)


def test_open__old_sessions__are_removed(state):
    sessions = Sessions(state)
    old, _ = _opened(state, sessions)
    _change(state, old, expires=now() - timedelta(days=1))
    _opened(state, sessions)
    with state.reading() as rows:
        assert rows.scalar(select(func.count()).select_from(SESSIONS)) == 1
