from dataclasses import dataclass, field

import pytest

from weakspot.core.registry import ROLES
from weakspot.testing.checks import checks_for


@dataclass(frozen=True, kw_only=True)
class Empty:
    """Has no method at all: these checks look at parameters only."""


@dataclass
class Unfrozen:
    n_folds: int = 3


@dataclass(frozen=True, kw_only=True)
class ListParameter(Empty):
    costs: list = field(default_factory=lambda: [1.0])


@dataclass(frozen=True, kw_only=True)
class TupleOfObjects(Empty):
    costs: tuple = (frozenset({1}),)


class Positional(Empty):
    def __init__(self, space="joint"):
        pass


def test_any_method__parameters_must_be_frozen_keywords_that_can_be_stored(rejected):
    assert "not frozen" in rejected("discoverers", "frozen_parameters", Unfrozen)
    assert "not parameters" in rejected("discoverers", "frozen_parameters", _with_attribute)
    assert "not hashable" in rejected("discoverers", "storable_parameters", ListParameter)
    assert "['space']" in rejected("discoverers", "keyword_arguments_only", Positional)
    with pytest.raises(TypeError, match="frozenset"):
        checks_for("discoverers")["storable_parameters"](TupleOfObjects)


def _with_attribute() -> Empty:
    made = Empty()
    vars(made)["slices"] = []
    return made


def test_any_part__an_instance_is_no_factory(rejected):
    part = Empty()
    assert "same object twice" in rejected("discoverers", "factory_gives_new_objects", lambda: part)


@pytest.mark.parametrize("role", ROLES)
def test_any_part__role_must_be_implemented(rejected, role):
    assert "lacks" in rejected(role, "implements_role", object)
