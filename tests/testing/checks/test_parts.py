from dataclasses import dataclass, field
from functools import cached_property

import pytest

from weakspot.core.errors import ConfigError, DataError
from weakspot.core.registry import ROLES, Sendable
from weakspot.testing import checks
from weakspot.testing.checks import checks_for
from weakspot.testing.fakes import PlantedEmbedder
from weakspot.testing.part_checks import ConformanceError, can_be_sent, expect_refusal, sent


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
    def __init__(self, space="clip"):
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


@pytest.mark.parametrize("role", sorted(set(ROLES) - {"rules"}))  # records, no parts
def test_any_part__role_must_be_implemented(rejected, role):
    assert "lacks" in rejected(role, "implements_role", object)


class Holding:
    """Keeps a function that cannot travel."""

    encoder_id = "holding"

    def __init__(self):
        self.session = lambda: 1


class Loading(Sendable):
    encoder_id = "loading"

    @cached_property
    def session(self):
        return lambda: 1

    def answer(self):
        return self.session()


class Forgetful(Loading):
    """Says something else on the other side."""

    def __init__(self):
        self.n_sent = 0

    def __getstate__(self):
        return {"n_sent": self.n_sent + 1}

    @property
    def encoder_id(self):
        return f"forgetful {self.n_sent}"


class Changing(Forgetful):
    encoder_id = "changing"

    def answer(self):
        return self.n_sent


def test_can_be_sent__parts_that_cannot_or_are_another_afterwards():
    check = can_be_sent("encoder_id", lambda part: part.answer())
    check(Loading)
    with pytest.raises(ConformanceError, match="another encoder_id"):
        check(Forgetful)
    with pytest.raises(ConformanceError, match="answers otherwise"):
        check(Changing)
    with pytest.raises(
        ConformanceError, match="Holding cannot be sent to another process.*Sendable"
    ):
        sent(Holding())


def test_can_be_sent__is_asked_of_every_model():
    roles = (
        "classifiers",
        "embedders",
        "captioners",
        "question_answerers",
        "text_generators",
        "image_generators",
    )
    assert all("can_be_sent" in checks_for(role) for role in roles)
    checks_for("embedders")["can_be_sent"](PlantedEmbedder)


def test_checks_for__unknown_role():
    with pytest.raises(ConfigError, match=r"no role 'painters'.*'discoverers'"):
        checks_for("painters")


def test_checks__one_function_a_role():
    for role in ROLES:
        assert callable(getattr(checks, f"check_{role.removesuffix('s')}"))
        assert len(checks_for(role)) >= (4 if role == "rules" else 7)


def test_expect_refusal__another_error_is_named():
    with (
        pytest.raises(ConformanceError, match="raised KeyError where"),
        expect_refusal("Nonsense was given"),
    ):
        raise KeyError("x")
    with expect_refusal("Nonsense was given"):
        raise DataError("no")
