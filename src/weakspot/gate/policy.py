"""A policy: what a model must keep to be released, read from a closed TOML file."""

import difflib
import tomllib
from datetime import date
from pathlib import Path
from types import UnionType
from typing import Annotated, Any, Literal, Self, Union, get_args, get_origin

from pydantic import Field, ValidationError, model_validator

from weakspot.core.errors import ConfigError, raise_all
from weakspot.data.settings import Section

Judge = Literal["interval", "point"]
Group = Literal["overall", "classes", "slices"]
Fraction = Annotated[float, Field(ge=0.0, le=1.0)]
MISSING_BAR = "this rule has no bar"
BARS = frozenset({"min", "max", "max_drop"})


class Judging(Section):
    """How all rules are judged."""

    level: float = Field(
        default=0.95,
        ge=0.5,
        lt=1.0,
        description="Confidence that an interval holds for all subjects of a rule.",
    )
    min_samples: int = Field(
        default=10, ge=1, description="A subject with fewer samples is not judged."
    )
    when_unsure: Literal["pass", "fail"] = Field(
        default="pass", description="What an entry that is not judged does to the verdict."
    )


class LeastRule(Section):
    """An accuracy that must be reached."""

    min: Fraction = Field(description="Least accuracy.")
    judge: Judge = Field(
        default="interval",
        description="interval: violated if clearly below; point: violated if below.",
    )


class ClassRule(LeastRule):
    """An accuracy that every class must reach."""

    per_class: dict[str, Fraction] = Field(
        default_factory=dict, description="Other bars for single classes, by name."
    )


class GapRule(Section):
    """A gap that no slice may exceed."""

    max: Fraction = Field(
        description="Largest gap between the failure rates inside a slice and in the rest of its class."
    )
    judge: Judge = Field(
        default="interval",
        description="interval: violated if clearly above; point: violated if above.",
    )


class CountRule(Section):
    """A number of confirmed findings that may not be exceeded: slices, slices that are new, or classes that fail as a whole."""

    max: int = Field(ge=0, description="Most that may be confirmed.")


class NewSliceRule(CountRule):
    """How many confirmed slices the baseline may lack."""

    same_at: float = Field(
        default=0.5,
        gt=0.0,
        le=1.0,
        description="Overlap of members from which on two slices are the same.",
    )


class RegressionRule(Section):
    """How much accuracy may fall against the baseline, on the same samples."""

    max_drop: Fraction = Field(description="Largest fall of accuracy that is let pass.")
    drop_that_matters: float | None = Field(
        default=None,
        gt=0.0,
        le=1.0,
        description="The fall that the check must be able to see; a subject with too few samples to see it is not judged.",
    )
    judge: Judge = Field(
        default="interval",
        description="interval: violated if it clearly fell by more; point: if it fell by more.",
    )
    of: tuple[Group, ...] = Field(
        default=("overall", "classes", "slices"), min_length=1, description="What is compared."
    )

    @model_validator(mode="after")
    def _check_drops(self) -> Self:
        if self.drop_that_matters is not None and self.drop_that_matters <= self.max_drop:
            raise ValueError("drop_that_matters must be larger than max_drop, which is let pass")
        return self


class NamedSlice(Section):
    """A slice that people named: samples of a class by a metadata column, or by words."""

    name: str = Field(min_length=1, description="What the slice is called in every output.")
    class_name: str = Field(
        alias="class",
        min_length=1,
        description="The class; `no x` for samples that lack the label x.",
    )
    column: str = Field(default="", description="Metadata column.")
    value: str | int | float | bool | None = Field(
        default=None, description="One value of the column."
    )
    values: tuple[str | int | float | bool, ...] = Field(
        default=(), description="Several values of the column."
    )
    low: float | None = Field(default=None, description="Least number in the column.")
    high: float | None = Field(default=None, description="Numbers in the column lie below this.")
    phrase: str = Field(
        default="",
        description="Words: samples that are nearer to the class with them than to the class alone.",
    )

    @model_validator(mode="after")
    def _check_rule(self) -> Self:
        has_values = bool(self.wanted) or self.low is not None or self.high is not None
        if bool(self.column) == bool(self.phrase):
            raise ValueError("give either a column or a phrase")
        if self.column and not has_values:
            raise ValueError("a column needs value, values, low or high")
        if self.phrase and has_values:
            raise ValueError("values belong to a column")
        return self

    @property
    def wanted(self) -> tuple[str | int | float | bool, ...]:
        """Return the values of the column."""
        return self.values if self.value is None else (self.value, *self.values)


class AcceptedSlice(Section):
    """A slice that somebody answers for until a date."""

    slice: str = Field(min_length=1, description="Id, title or name of the slice.")
    reason: str = Field(min_length=1, description="Why it is accepted.")
    until: date = Field(description="Last day on which it is accepted.")


class Policy(Section):
    """Everything in a policy file; a rule that is not there is not judged."""

    judging: Judging = Judging()
    overall_accuracy: LeastRule | None = None
    class_accuracy: ClassRule | None = None
    slice_accuracy: LeastRule | None = None
    slice_gap: GapRule | None = None
    confirmed_slices: CountRule | None = None
    failing_classes: CountRule | None = None
    new_slices: NewSliceRule | None = None
    regressions: RegressionRule | None = None
    slices: tuple[NamedSlice, ...] = ()
    accepted: tuple[AcceptedSlice, ...] = ()

    @model_validator(mode="after")
    def _check_whole(self) -> Self:
        if not self.rules:
            raise ValueError(f"there is no rule (known: {', '.join(RULES)})")
        for listed, what in (
            ([one.name for one in self.slices], "slices"),
            ([one.slice for one in self.accepted], "accepted"),
        ):
            twice = sorted({name for name in listed if listed.count(name) > 1})
            if twice:
                raise ValueError(f"{what}: listed twice: {', '.join(twice)}")
        return self

    @property
    def rules(self) -> tuple[str, ...]:
        return tuple(name for name in RULES if getattr(self, name) is not None)

    @property
    def needs_baseline(self) -> bool:
        """Return whether a rule compares with a baseline."""
        return self.new_slices is not None or self.regressions is not None


RULES = (
    "overall_accuracy",
    "class_accuracy",
    "slice_accuracy",
    "slice_gap",
    "confirmed_slices",
    "failing_classes",
    "new_slices",
    "regressions",
)


def without_comparisons(policy: Policy) -> Policy | None:
    """Return the rules that need no baseline, None if there are none."""
    kept = policy.model_copy(update={"new_slices": None, "regressions": None})
    return kept if kept.rules else None


def load_policy(path: Path) -> Policy:
    """Read a policy file.

    Raises:
        ConfigError: with every problem that the file has.
    """
    try:
        given = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise ConfigError(
            "There is no policy file here.",
            where=str(path),
            fix="Name it with --policy; docs/guide/release.md shows one.",
        ) from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"The policy is not valid TOML: {error}.", where=str(path)) from error
    except OSError as error:
        raise ConfigError(
            f"The policy cannot be read: {error.strerror}.", where=str(path)
        ) from error
    return parse_policy(given, where=str(path))


def parse_policy(given: dict[str, Any], *, where: str) -> Policy:
    """Turn a nested policy into a checked one; all problems are reported in one error."""
    try:
        return Policy.model_validate(given)
    except ValidationError as error:
        problems = [_problem(dict(item)) for item in error.errors()]
        raise_all(
            problems,
            error=ConfigError,
            what="The policy cannot be used:",
            where=where,
            fix="Correct it and start again.",
        )
        raise


def _problem(item: dict[str, Any]) -> str:
    location = tuple(item["loc"])
    name = ".".join(str(part) for part in location)
    if item["type"] == "extra_forbidden":
        known = sorted(_known_keys(location[:-1]))
        near = difflib.get_close_matches(str(location[-1]), known, n=1)
        hint = f"; did you mean {near[0]}?" if near else ""
        return f"{name}: there is no such key (known here: {', '.join(known)}){hint}"
    if item["type"] == "missing":
        return f"{name}: {MISSING_BAR}" if location[-1] in BARS else f"{name}: is needed"
    said = str(item["msg"]).removeprefix("Value error, ")
    return (
        f"{name}: {said} (given: {item.get('input')!r})"
        if name and item["type"] != "value_error"
        else f"{name}: {said}".lstrip(": ")
    )


def _known_keys(location: tuple[str | int, ...]) -> set[str]:
    model: Any = Policy
    for part in location:
        if isinstance(part, str):
            model = _section(model.model_fields[part].annotation)
    return {field.alias or name for name, field in model.model_fields.items()}


def _section(annotation: Any) -> Any:
    """Return the section inside an annotation such as `X | None` or `tuple[X, ...]`."""
    if get_origin(annotation) in (Union, UnionType, tuple):
        return next(
            part
            for part in map(_section, get_args(annotation))
            if isinstance(part, type) and issubclass(part, Section)
        )
    return annotation
