import copy
import pickle
from dataclasses import dataclass
from functools import cached_property
from threading import Lock

import pytest

from weakspot.core.registry import LeftBehind, Sendable


class Kept(LeftBehind):
    def __set_name__(self, owner, name):
        self.name = name

    def __get__(self, instance, owner=None):
        return vars(instance).setdefault(self.name, Lock())


class Part(Sendable):
    lock = Kept()

    def __init__(self, *, name):
        self.name = name
        self.n_used = 0

    @cached_property
    def session(self):
        return lambda: self.name


class Special(Part):
    """What it inherits stays behind too."""


@dataclass(frozen=True, kw_only=True)
class Settings(Sendable):
    side: int

    @cached_property
    def network(self):
        return lambda: self.side


@pytest.mark.parametrize("kind", [Part, Special])
def test_sendable__what_was_loaded_stays_behind(kind):
    part = kind(name="one")
    part.n_used = 3
    assert part.session() == "one"
    assert part.lock.acquire()
    other = pickle.loads(pickle.dumps(part))
    assert vars(other) == {"name": "one", "n_used": 3}
    assert other.session() == "one"
    assert other.lock.acquire()
    assert "session" in vars(part)


def test_sendable__frozen_dataclass():
    part = Settings(side=4)
    assert part.network() == 4
    other = pickle.loads(pickle.dumps(part))
    assert other == part
    assert other.network() == 4


def test_sendable__a_copy_in_this_process_shares_what_is_loaded():
    part = Part(name="one")
    session = part.session
    assert copy.copy(part).session is session


def test_sendable__whoever_is_told_progress_stays_here():
    part = Part(name="one")
    part._progress = lambda done, total: None

    other = pickle.loads(pickle.dumps(part))

    assert other._progress is None
    assert part._progress is not None
