"""Parts that can be sent to another process: what goes is what they were built from, never a loaded model."""

from functools import cached_property
from typing import Any, Self

_PROGRESS = "_progress"


class LeftBehind:
    """Base of descriptors that keep something under their own name in an object; a `Sendable` leaves that behind."""


class Sendable:
    """Base of parts that hold a session, a network or a connection.

    Pickled, such a part loses what its cached properties keep, and loads that again on the other side, on first use; and it loses
    `_progress`, because whoever is told the progress of a download is on this side. Everything else must be able to travel: no
    lock, no open file, no function inside a function.

    >>> class Part(Sendable):
    ...     def __init__(self, *, name: str) -> None:
    ...         self.name = name
    ...     @cached_property
    ...     def session(self) -> object:
    ...         return lambda: self.name
    >>> part = Part(name="one")
    >>> part.session(), part.__getstate__()
    ('one', {'name': 'one'})
    """

    def __getstate__(self) -> dict[str, Any]:
        """Return what the part was built from."""
        return {
            name: None if name == _PROGRESS else value
            for name, value in vars(self).items()
            if not _is_left_behind(type(self), name)
        }

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Take what was sent; frozen dataclasses too."""
        vars(self).update(state)

    def __copy__(self) -> Self:
        other = object.__new__(type(self))
        vars(other).update(vars(self))
        return other


def _is_left_behind(kind: type, name: str) -> bool:
    owner = next((vars(one)[name] for one in kind.__mro__ if name in vars(one)), None)
    return isinstance(owner, cached_property | LeftBehind)
