"""The check that a part can be sent to another process, for engines that work in several."""

import pickle
from collections.abc import Callable
from typing import Any

import numpy as np

from weakspot.testing.checks.expectation import Check, ConformanceError, Factory, expect

TOLERANCE = 2e-3


def can_be_sent(identity: str, answer: Callable[[Any], Any]) -> Check:
    """Return the check that a part which was sent has the same id and answers alike.

    Args:
        identity: name of the property that gives the id.
        answer: asks the part something small; numbers, texts or bytes.
    """

    def sent_part_is_the_same(factory: Factory) -> None:
        part = factory()
        before, said = getattr(part, identity), answer(part)
        other = sent(part)
        expect(getattr(other, identity) == before, f"Sent to another process, the part has another {identity}.")
        _expect_alike(answer(other), said)
        expect(getattr(part, identity) == before, "Sending the part changed it.")

    return sent_part_is_the_same


def sent(part: Any) -> Any:
    """Return a part as another process would get it.

    Raises:
        ConformanceError: if it cannot be sent.
    """
    try:
        return pickle.loads(pickle.dumps(part))  # noqa: S301 - of our own making
    except Exception as error:
        raise ConformanceError(
            f"{type(part).__name__} cannot be sent to another process: {type(error).__name__}: {error}. "
            "Derive it from weakspot.core.sending.Sendable and keep what is loaded in cached properties."
        ) from error


def _expect_alike(found: object, wanted: object) -> None:
    if isinstance(found, np.ndarray) and isinstance(wanted, np.ndarray):
        is_alike = found.shape == wanted.shape and np.allclose(found, wanted, atol=TOLERANCE, equal_nan=True)
    else:
        is_alike = found == wanted
    expect(is_alike, "Sent to another process, the part answers otherwise.")
