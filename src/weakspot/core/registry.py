"""Role and name to class, and parts that can be sent to another process.

Every part, built-in or not, is an entry point of its role's group. Built-ins have plain names; those of other packages are
`package/name`. Nothing is imported before it is asked for. What is sent is what a part was built from, never a loaded model.
"""

from functools import cache, cached_property
from importlib.metadata import EntryPoint, entry_points
from typing import Any, Self

from weakspot.core.errors import ConfigError

ROLES: tuple[str, ...] = (
    "classifiers",
    "embedders",
    "captioners",
    "question_answerers",
    "text_generators",
    "image_generators",
    "segmenters",
    "discoverers",
    "describers",
    "verifiers",
    "repairers",
    "engines",
    "rules",
)
OWN_DISTRIBUTION = "weakspot"


@cache
def registered(role: str) -> dict[str, EntryPoint]:
    """Return the entry points of a role by registered name, sorted."""
    if role not in ROLES:
        raise ConfigError(
            f"There is no role {role!r}.", given=role, fix=f"Choose one of {list(ROLES)}."
        )
    found = {_registered_name(point): point for point in entry_points(group=f"weakspot.{role}")}
    return dict(sorted(found.items()))


def _registered_name(point: EntryPoint) -> str:
    distribution = point.dist.name if point.dist is not None else "unknown"
    return point.name if distribution == OWN_DISTRIBUTION else f"{distribution}/{point.name}"


def part_class(role: str, name: str) -> Any:
    """Return the class registered under a name.

    Raises:
        ConfigError: if there is none, with the names there are; or if it cannot be imported.
    """
    points = registered(role)
    if name not in points:
        raise ConfigError(
            f"There is no {_singular(role)} called {name!r}.",
            given=name,
            fix=f"Choose one of {list(points)}.",
        )
    try:
        return points[name].load()
    except (ImportError, AttributeError, SyntaxError) as error:
        raise ConfigError(
            f"The {_singular(role)} {name!r} cannot be imported: {error}.",
            where=points[name].value,
            fix="Reinstall its package.",
        ) from error


def _singular(role: str) -> str:
    return role.removesuffix("s").replace("_", " ")


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
