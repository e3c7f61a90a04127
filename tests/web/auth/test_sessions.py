from datetime import timedelta

from sqlalchemy import func, select

from weakspot.web.auth.login import (
    LIFETIME,
    REMEMBERED_SECONDS,
    SEEN_AGAIN_AFTER,
    Sessions,
    owner_row,
    person_of_row,
)
from weakspot.web.state.store import SessionRow, now, token_hash


class Clock:
    seconds = 0.0

    def __call__(self) -> float:
        return self.seconds


def _opened(state, sessions):
    with state.writing() as rows:
        return sessions.open(rows, person_of_row(owner_row(rows)))


def _change(state, token, **changes):
    with state.writing() as rows:
        row = rows.get(SessionRow, token_hash(token))
        for name, value in changes.items():
            setattr(row, name, value)


def test_open__token__only_its_hash_is_kept(state):
    opened = _opened(state, Sessions(state))
    with state.reading() as rows:
        row = rows.scalars(select(SessionRow)).one()
    assert not {opened.token, opened.csrf_token} & {row.token_hash, row.person_id}


def test_person_with__known_and_unknown(state):
    sessions = Sessions(state)
    opened = _opened(state, sessions)
    assert sessions.person_with(opened.token) == opened.person
    assert sessions.person_with("another") is None


def test_person_with__expired__nobody(state):
    sessions = Sessions(state)
    opened = _opened(state, sessions)
    _change(state, opened.token, expires=now() - timedelta(seconds=1))
    assert sessions.person_with(opened.token) is None


def test_person_with__seen_after_a_while__lasts_longer(state):
    sessions = Sessions(state)
    opened = _opened(state, sessions)
    _change(
        state,
        opened.token,
        last_seen=now() - 2 * SEEN_AGAIN_AFTER,
        expires=now() + timedelta(hours=1),
    )
    sessions.person_with(opened.token)
    with state.reading() as rows:
        assert rows.scalars(select(SessionRow)).one().expires > now() + LIFETIME - timedelta(
            minutes=1
        )


def test_remembered__moments_only(state):
    clock = Clock()
    sessions = Sessions(state, clock=clock)
    opened = _opened(state, sessions)
    assert sessions.recall(opened.token) is None
    sessions.person_with(opened.token)
    assert sessions.recall(opened.token) == opened.person
    clock.seconds = REMEMBERED_SECONDS
    assert sessions.recall(opened.token) is None


def test_close__at_once_nobody(state):
    sessions = Sessions(state)
    opened = _opened(state, sessions)
    sessions.person_with(opened.token)
    assert sessions.close(opened.token)
    assert sessions.recall(opened.token) is None
    assert sessions.person_with(opened.token) is None
    assert not sessions.close(opened.token)


def test_open__old_sessions__are_removed(state):
    sessions = Sessions(state)
    old = _opened(state, sessions)
    _change(state, old.token, expires=now() - timedelta(days=1))
    _opened(state, sessions)
    with state.reading() as rows:
        assert rows.scalar(select(func.count()).select_from(SessionRow)) == 1
