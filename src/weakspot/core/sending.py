"""Parts that can be sent to another process: what goes is what they were built from, never a loaded model."""

from collections.abc import Callable, Mapping
from typing import Any, Self

_GIVEN = "_weakspot_given"


class Sendable:
    """Base of parts that hold a session, a network or a connection.

    Pickled, such a part becomes its class and the arguments it was built from; on the other side it is built again, and loads what
    it needs there on first use.

    >>> import pickle
    >>> class Part(Sendable):
    ...     def __init__(self, *, name: str) -> None:
    ...         self.name, self.handle = name, lambda: None
    >>> globals()["Part"] = Part
    >>> pickle.loads(pickle.dumps(Part(name="one"))).name
    'one'
    """

    def __new__(cls, *args: Any, **options: Any) -> Self:
        """Remember what the part is built from."""
        part = super().__new__(cls)
        object.__setattr__(part, _GIVEN, (args, options))
        return part

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        """Return how to build the part again."""
        args, options = getattr(self, _GIVEN)
        return _built_again, (type(self), args, options)


def _built_again(kind: type[Any], args: tuple[Any, ...], options: Mapping[str, Any]) -> Any:
    return kind(*args, **options)
