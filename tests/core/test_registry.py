import copy
import json
import pickle
import subprocess
import sys
from dataclasses import dataclass
from functools import cached_property
from threading import Lock

import pytest

from weakspot.core.errors import ConfigError
from weakspot.core.registry import ROLES, LeftBehind, Sendable, part_class, registered


def test_registered__built_ins_have_plain_names_in_order():
    names = list(registered("repairers"))
    assert names == sorted(names)
    assert {"slice-balanced", "pool-random", "worst-slice"} <= set(names)


@pytest.mark.parametrize("role", sorted(set(ROLES) - {"rules"}))  # ours are in core.rules
def test_registered__every_role_has_a_part(role):
    assert registered(role)


def test_registered__unknown_role():
    with pytest.raises(ConfigError, match=r"no role 'painters'.*'classifiers'"):
        registered("painters")


def test_part_class__gives_the_class():
    assert part_class("verifiers", "holdout").__name__ == "HoldoutVerifier"


def test_part_class__unknown_name_lists_those_there_are():
    with pytest.raises(
        ConfigError,
        match=r"no question answerer called 'oracle'.*\['endpoint', 'planted', 'transformers'\]",
    ):
        part_class("question_answerers", "oracle")


def test_registered__nothing_is_imported_by_looking():
    script = (
        "import json, sys\nfrom weakspot.core.registry import ROLES, registered\n"
        "[registered(role) for role in ROLES]\n"
        "print(json.dumps([name for name in sys.modules if name.startswith('weakspot.models')]))"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert json.loads(done.stdout) == []


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ("nowhere_at_all:Part", "No module named"),
        ("json:Part", "has no attribute 'Part'"),
        ("broken_module:Part", "invalid syntax"),
    ],
)
def test_part_class__a_part_that_cannot_be_imported_is_named(tmp_path, monkeypatch, value, said):
    (tmp_path / "broken_module.py").write_text("def (:\n")
    information = tmp_path / "other_parts-1.0.dist-info"
    information.mkdir()
    (information / "METADATA").write_text(
        "Metadata-Version: 2.1\nName: other-parts\nVersion: 1.0\n"
    )
    (information / "entry_points.txt").write_text(f"[weakspot.engines]\nlost = {value}\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    registered.cache_clear()
    try:
        assert "other-parts/lost" in registered("engines")
        with pytest.raises(
            ConfigError, match=rf"engine 'other-parts/lost' cannot be imported: .*{said}.*Reinstall"
        ):
            part_class("engines", "other-parts/lost")
    finally:
        registered.cache_clear()


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
