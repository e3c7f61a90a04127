"""Role and name to class.

Every part, built-in or not, is an entry point of its role's group. Built-ins have plain names; those of other packages are
`package/name`. Nothing is imported before it is asked for.
"""

from functools import cache
from importlib.metadata import EntryPoint, entry_points
from typing import Any

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
