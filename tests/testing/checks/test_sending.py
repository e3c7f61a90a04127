from functools import cached_property

import pytest

from weakspot.core.sending import Sendable
from weakspot.testing.checks import checks_for
from weakspot.testing.checks.expectation import ConformanceError
from weakspot.testing.checks.sending import can_be_sent, sent
from weakspot.testing.fakes import PlantedEmbedder


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
    with pytest.raises(ConformanceError, match="Holding cannot be sent to another process.*Sendable"):
        sent(Holding())


def test_can_be_sent__is_asked_of_every_model():
    roles = ("classifiers", "embedders", "captioners", "question_answerers", "text_generators", "image_generators")
    assert all("can_be_sent" in checks_for(role) for role in roles)
    checks_for("embedders")["can_be_sent"](PlantedEmbedder)
