"""How a check says that a part does not keep its contract, and what holds for every part, whatever its role."""

import dataclasses
import inspect
import json
import pickle
import random
from collections.abc import Callable, Hashable, Iterator, Mapping
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
        "The result depends on the global random state; draw from weakspot.core.arrays.generator.",
    )


def _run_from(seed: int, run: Callable[[], object]) -> object:
    random.seed(seed)
    np.random.seed(seed)  # noqa: NPY002
    before = _global_state()
    result = run()
    expect(
        before == _global_state(),
        "The global random state was moved; draw from weakspot.core.arrays.generator.",
    )
    return result


def _global_state() -> tuple[object, ...]:
    state: Any = np.random.get_state(legacy=False)  # noqa: NPY002
    return random.getstate(), state["state"]["key"].tobytes(), state["state"]["pos"]


SEVERAL = (
    inspect.Parameter.POSITIONAL_ONLY,
    inspect.Parameter.POSITIONAL_OR_KEYWORD,
    inspect.Parameter.VAR_POSITIONAL,
)


def implements(role: type[Any]) -> Check:

    def implements_role(factory: Factory) -> None:
        part = factory()
        members = [name for name in vars(role) if not name.startswith("_")]
        missing = [
            name
            for name in members
            if inspect.getattr_static(part, name, None) is None and not hasattr(part, name)
        ]
        expect(not missing, f"{type(part).__name__} lacks {missing} of the role {role.__name__}.")
        expect(isinstance(part, role), f"{type(part).__name__} is no {role.__name__}.")

    return implements_role


def role_checks(role: type[Any], shared: Mapping[str, Check], *checks: Check) -> dict[str, Check]:
    """Return the checks of a role by name: that a part has all of it, what holds for parts of its kind, and its own."""
    own = {check.__name__: check for check in checks}
    return {"implements_role": implements(role), **shared, **own}


def keyword_arguments_only(factory: Factory) -> None:
    """Parts are built from keyword arguments only, so that settings files can name them."""
    given = inspect.signature(type(factory())).parameters.values()
    positional = [parameter.name for parameter in given if parameter.kind in SEVERAL]
    expect(not positional, f"These arguments must be keyword-only: {positional}.")


def factory_gives_new_objects(factory: Factory) -> None:
    first, second = factory(), factory()
    expect(
        first is not second, "The factory returned the same object twice; it must build a new one."
    )


def frozen_parameters(factory: Factory) -> None:
    """Methods are frozen dataclasses whose fields are their parameters."""
    part = factory()
    expect(dataclasses.is_dataclass(part), f"{type(part).__name__} is no dataclass.")
    settings: Any = getattr(type(part), "__dataclass_params__", None)
    expect(
        settings is not None and settings.frozen,
        f"{type(part).__name__} is not frozen: dataclass(frozen=True, kw_only=True).",
    )
    expect(factory() == part, "Two parts with the same parameters are not equal.")
    extra = set(getattr(part, "__dict__", {})) - {field.name for field in dataclasses.fields(part)}
    expect(not extra, f"These attributes are not parameters: {sorted(extra)}.")


def storable_parameters(factory: Factory) -> None:
    """Parameters go into run records: they survive JSON, and all but mappings are hashable."""
    part = factory()
    for field in dataclasses.fields(part):
        if not isinstance(value := getattr(part, field.name), Mapping):
            expect(
                isinstance(value, Hashable),
                f"The parameter {field.name} is not hashable: use a tuple.",
            )
    values = dataclasses.asdict(part)
    stored = json.loads(json.dumps(values))
    expect(set(stored) == set(values), "The parameters change in JSON.")
    for name, value in values.items():
        expect(
            _as_stored(value) == stored[name],
            f"The parameter {name} changes in JSON: {value!r} to {stored[name]!r}.",
        )


def _as_stored(value: object) -> object:
    if isinstance(value, tuple | list):
        return [_as_stored(item) for item in value]
    if isinstance(value, dict):
        return {key: _as_stored(item) for key, item in value.items()}
    return value


ANY_PART: dict[str, Check] = {
    "keyword_arguments_only": keyword_arguments_only,
    "factory_gives_new_objects": factory_gives_new_objects,
}
ANY_METHOD: dict[str, Check] = {
    **ANY_PART,
    "frozen_parameters": frozen_parameters,
    "storable_parameters": storable_parameters,
}


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
        expect(
            getattr(other, identity) == before,
            f"Sent to another process, the part has another {identity}.",
        )
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
            "Derive it from weakspot.core.registry.Sendable and keep what is loaded in cached properties."
        ) from error


def _expect_alike(found: object, wanted: object) -> None:
    if isinstance(found, np.ndarray) and isinstance(wanted, np.ndarray):
        is_alike = found.shape == wanted.shape and np.allclose(
            found, wanted, atol=TOLERANCE, equal_nan=True
        )
    else:
        is_alike = found == wanted
    expect(is_alike, "Sent to another process, the part answers otherwise.")
