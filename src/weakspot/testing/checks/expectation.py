"""How a check says that a part does not keep its contract."""

import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from weakspot.core.arrays import AnyArray
from weakspot.core.errors import WeakspotError

Factory = Callable[[], Any]
Check = Callable[[Factory], None]


class ConformanceError(AssertionError):
    """A part does not keep the contract of its role."""


def expect(condition: object, message: str) -> None:
    """Raise a ConformanceError unless the condition holds."""
    if not condition:
        raise ConformanceError(message)


def expect_close(
    found: AnyArray, wanted: AnyArray, message: str, *, tolerance: float = 1e-4
) -> None:
    """Raise a ConformanceError unless two arrays have one shape and nearly the same numbers."""
    expect(found.shape == wanted.shape, f"{message}: shapes {found.shape} and {wanted.shape}")
    largest = float(
        np.max(np.abs(found.astype(np.float64) - wanted.astype(np.float64)), initial=0.0)
    )
    expect(largest <= tolerance, f"{message}: they differ by {largest:.3g}")


@contextmanager
def expect_refusal(message: str) -> Iterator[None]:
    """Raise a ConformanceError unless the block raises a WeakspotError."""
    try:
        yield
    except WeakspotError:
        return
    except Exception as error:
        raise ConformanceError(
            f"{message}: it raised {type(error).__name__} where a WeakspotError is due"
        ) from error
    raise ConformanceError(f"{message}: it went through")


def expect_no_global_randomness(run: Callable[[], object]) -> None:
    """Raise a ConformanceError if a call reads or moves the global random state of numpy or of the standard library."""
    saved: Any = random.getstate(), np.random.get_state()  # noqa: NPY002 - guarding it is the point
    try:
        results = [_run_from(seed, run) for seed in (1, 2)]
    finally:
        random.setstate(saved[0])
        np.random.set_state(saved[1])  # noqa: NPY002
    expect(
        results[0] == results[1],
        "The result depends on the global random state; draw from weakspot.core.seeding.generator.",
    )


def _run_from(seed: int, run: Callable[[], object]) -> object:
    random.seed(seed)
    np.random.seed(seed)  # noqa: NPY002
    before = _global_state()
    result = run()
    expect(
        before == _global_state(),
        "The global random state was moved; draw from weakspot.core.seeding.generator.",
    )
    return result


def _global_state() -> tuple[object, ...]:
    state: Any = np.random.get_state(legacy=False)  # noqa: NPY002
    return random.getstate(), state["state"]["key"].tobytes(), state["state"]["pos"]
