"""A property that is filled on first use, by one thread while others wait."""

import copy
from collections.abc import Callable
from threading import RLock
from typing import Any, Generic, TypeVar

from weakspot.core.sending import LeftBehind

Value = TypeVar("Value")


class LoadedOnce(LeftBehind, Generic[Value]):
    """Decorator for a method without arguments whose answer is kept; a failed load is tried again.

    Decoder threads may be the first to ask a classifier for its input size, and the model must not be loaded once a thread.
    """

    def __init__(self, load: Callable[[Any], Value]) -> None:
        self.__doc__ = load.__doc__
        self._load = load
        self._name = load.__name__
        self._lock = RLock()

    def __reduce__(self) -> tuple[type["LoadedOnce[Value]"], tuple[Callable[[Any], Value]]]:
        """Return how it is made again, for classes that are sent themselves because no module holds them."""
        return LoadedOnce, (self._load,)

    def __get__(self, instance: Any, owner: type | None = None) -> Value:
        kept = vars(instance)
        with self._lock:
            if self._name not in kept:
                kept[self._name] = self._load(instance)
        value: Value = kept[self._name]
        return value


def reloaded(instance: Any, **changes: Any) -> Any:
    """Return a copy of an object that has loaded nothing yet, with other attributes."""
    kept = {
        name
        for kind in type(instance).__mro__
        for name, value in vars(kind).items()
        if isinstance(value, LoadedOnce)
    }
    other = copy.copy(instance)
    vars(other).clear()
    vars(other).update(
        {name: value for name, value in vars(instance).items() if name not in kept} | changes
    )
    return other
