"""Bounds of settings, written where the setting is declared and checked in one place; and the choice of an order of slices.

Light: the terminal offers the choice before anything is loaded.
"""

import dataclasses
import math
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from numbers import Integral, Real
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

from weakspot.core.errors import ConfigError, raise_all


@dataclass(frozen=True, kw_only=True)
class Bounds:
    """Where a number may lie; infinity and NaN are refused.

    Args:
        ge: the least number, itself allowed.
        gt: what the number must be above.
        le: the largest number, itself allowed.
        lt: what the number must be below.
    """

    ge: float | None = None
    gt: float | None = None
    le: float | None = None
    lt: float | None = None

    def contains(self, value: float) -> bool:
        return (
            math.isfinite(value)
            and (self.ge is None or value >= self.ge)
            and (self.gt is None or value > self.gt)
            and (self.le is None or value <= self.le)
            and (self.lt is None or value < self.lt)
        )

    @property
    def rule(self) -> str:
        """What a number must do, as the end of a sentence that begins with `must`."""
        least = self.ge if self.ge is not None else self.gt
        largest = self.le if self.le is not None else self.lt
        if least is not None and largest is not None:
            opening, closing = "[" if self.gt is None else "(", "]" if self.lt is None else ")"
            return f"lie in {opening}{least:g}, {largest:g}{closing}"
        if least is not None:
            return f"be {'at least' if self.gt is None else 'above'} {least:g}"
        if largest is not None:
            return f"be {'at most' if self.lt is None else 'below'} {largest:g}"
        return "be a finite number"


Count = Annotated[int, Bounds(ge=1)]
NonNegativeInt = Annotated[int, Bounds(ge=0)]
NonNegative = Annotated[float, Bounds(ge=0)]
Positive = Annotated[float, Bounds(gt=0)]
Fraction = Annotated[float, Bounds(ge=0, le=1)]
PositiveFraction = Annotated[float, Bounds(gt=0, le=1)]
Level = Annotated[float, Bounds(gt=0, lt=1)]


def check_bounds(settings: Any, *, where: str = "", problems: Iterable[str] = ()) -> None:
    """Refuse a parameter object with fields out of bounds; all problems come in one error.

    Args:
        settings: a dataclass instance.
        where: the section its fields belong to, put before their names.
        problems: what else is wrong, as sentences, for conditions that no bound of one field can say.

    Raises:
        ConfigError: if anything is wrong.
    """
    prefix = f"{where}." if where else ""
    kind: Any = type(settings)
    errors = [
        ConfigError(
            f"The setting {prefix}{field.name} must {rule}.",
            given=getattr(settings, field.name),
            fix=_fix(field),
        )
        for field in dataclasses.fields(settings)
        if (rule := broken_rule(getattr(settings, field.name), _hints(kind)[field.name]))
    ]
    others = list(problems)
    if len(errors) == 1 and not others:
        raise errors[0]
    raise_all(
        [*map(str, errors), *others],
        error=ConfigError,
        what="These settings cannot be used:"
        if len(errors) + len(others) > 1
        else "A setting cannot be used:",
        where=where or type(settings).__name__,
    )


def broken_rule(value: object, hint: Any) -> str:
    """Return what a value must do to fit an annotation, or an empty text if it fits or nothing is demanded."""
    origin = get_origin(hint)
    if origin is Annotated:
        base, *extras = get_args(hint)
        bounds = next((extra for extra in extras if isinstance(extra, Bounds)), None)
        return _broken_bounds(value, base, bounds) if bounds else broken_rule(value, base)
    if hint is bool:
        # numpy's own truth values, too; numpy itself is not imported: commands that read no array start without it
        kind = (str(getattr(value, "dtype", "")), getattr(value, "shape", None))
        return "" if isinstance(value, bool) or kind == ("bool", ()) else "be true or false"
    if origin is Literal:
        choices = list(get_args(hint))
        return "" if value in choices else f"be one of {choices}"
    if origin in (Union, UnionType):
        rules = [_broken_member(value, member) for member in get_args(hint)]
        return " or ".join(rules) if all(rules) else ""
    if origin is tuple and get_args(hint)[-1:] == (Ellipsis,) and isinstance(value, tuple | list):
        rule = next(filter(None, (broken_rule(item, get_args(hint)[0]) for item in value)), "")
        return f"each {rule}" if rule else ""
    return ""


def _broken_member(value: object, hint: Any) -> str:
    """Return the rule of one member of a union; members without bounds are told apart by their type."""
    if hint is NoneType:
        return "" if value is None else "be None"
    if isinstance(hint, type):
        return "" if isinstance(value, hint) else f"be of type {hint.__name__}"
    return broken_rule(value, hint)


def _broken_bounds(value: object, base: Any, bounds: Bounds) -> str:
    kind = Integral if base is int else Real
    if isinstance(value, bool) or not isinstance(value, kind):
        return f"be a {'whole ' if base is int else ''}number and {bounds.rule}"
    return "" if bounds.contains(float(value)) else bounds.rule


def _fix(field: "dataclasses.Field[Any]") -> str | None:
    if field.default is dataclasses.MISSING:
        return None
    return f"Leave it out for {field.default!r}."


@cache
def _hints(kind: type) -> dict[str, Any]:
    return get_type_hints(kind, include_extras=True)


class SliceOrder(StrEnum):
    """By what slices are ordered for a reader."""

    SEVERITY = "severity"
    COVERAGE = "coverage"
    BOTH = "both"
