"""Long work that people start from a page: each kind is a function of the project, arguments and a progress callback.

It runs in a process of its own and may be ended at any moment, so it must leave nothing half-done and go on where it was when it is
started again. What it returns is small and can be written as JSON: ids and figures, never samples.
"""

import json
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Annotated, Literal

from pydantic import Field, JsonValue, StringConstraints, ValidationError

from weakspot.core.errors import ConfigError
from weakspot.core.run import StageProgress
from weakspot.project.project import Project
from weakspot.web.services.view import View, field_words

ClassName = Annotated[str, StringConstraints(min_length=1, max_length=500)]
Caption = Annotated[str, StringConstraints(min_length=1, max_length=300)]
MAX_CAPTIONS, MAX_EACH, MAX_BUDGET = 12, 200, 20_000


class CounterfactualArguments(View):
    """Captions to be generated and measured.

    Args:
        class_name: what the images show.
        captions: what is changed in them.
        n_each: images for every caption.
        agreed_cost: what the person agreed to pay at most; 0 if nothing.
    """

    class_name: ClassName
    captions: tuple[Caption, ...] = Field(min_length=1, max_length=MAX_CAPTIONS)
    n_each: int = Field(default=24, ge=1, le=MAX_EACH)
    agreed_cost: float = Field(default=0.0, ge=0.0, le=1e6, allow_inf_nan=False)


class SearchArguments(View):
    """Where failing captions are searched for.

    Args:
        class_name: whose failures.
        target: count only failures that are taken for this class; any if empty.
        captions: a person's own captions, measured first.
        budget: most images in all.
        agreed_cost: what the person agreed to pay at most; 0 if nothing.
    """

    class_name: ClassName
    target: str = Field(default="", max_length=500)
    captions: tuple[Caption, ...] = Field(default=(), max_length=MAX_CAPTIONS)
    budget: int | None = Field(default=None, ge=16, le=MAX_BUDGET)
    agreed_cost: float = Field(default=0.0, ge=0.0, le=1e6, allow_inf_nan=False)


Identifier = Annotated[
    str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]*$", max_length=100)
]
"""Ids of runs and slices."""
PartName = Annotated[
    str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9_./-]*$", max_length=200)
]
"""Registered names of methods; those of other packages have a stroke in them."""


class PreflightArguments(View):
    """Nothing: what is looked at is what the project says."""


class RunArguments(View):
    """How failures are looked for.

    Args:
        methods: registered discoverers, or `all`; those of weakspot.toml if empty.
    """

    methods: tuple[PartName, ...] = Field(default=(), max_length=50)


class RepairArguments(View):
    """What is repaired, and how.

    Args:
        run: the newest if none is named.
        slice_ids: confirmed slices; all of them that no other explains if empty.
        strategy: a registered repairer; the one of weakspot.toml if none is named.
        is_comparison: run every strategy that the samples allow.
        budget: samples that may be taken from the pool; as in weakspot.toml if None.
    """

    run: Identifier | None = None
    slice_ids: tuple[Identifier, ...] = Field(default=(), max_length=200)
    strategy: PartName | None = None
    is_comparison: bool = False
    budget: int | None = Field(default=None, ge=0, le=10_000_000)


class ReportArguments(View):
    """Which run is reported on: the newest if none is named."""

    run: Identifier | None = None


class StudyRepairsArguments(View):
    """Which study's phrases are repaired by; which ones was written down before."""

    study: Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_-]{1,64}$")]


class AttributesArguments(View):
    """Nothing: attributes are assigned as they were planned."""


class MapArguments(View):
    """Which layout of the map is made."""

    layout: Literal["umap"] = "umap"


class CompareArguments(View):
    """Which project is compared with, by name; `serve --compare` names its folder."""

    other: Annotated[str, StringConstraints(min_length=1, max_length=255)]


ARGUMENTS: dict[str, type[View]] = {
    "attributes": AttributesArguments,
    "map": MapArguments,
    "compare": CompareArguments,
    "preflight": PreflightArguments,
    "run": RunArguments,
    "repair": RepairArguments,
    "report": ReportArguments,
    "search": SearchArguments,
    "counterfactual": CounterfactualArguments,
    "study-repairs": StudyRepairsArguments,
}


MAX_ARGUMENTS_LENGTH = 20_000

Arguments = Mapping[str, JsonValue]
Work = Callable[[Project, Arguments, StageProgress], dict[str, JsonValue]]

KINDS: dict[str, str] = {
    "preflight": "weakspot.web.services.loop:preflight",
    "run": "weakspot.web.services.loop:run",
    "repair": "weakspot.web.services.loop:repair",
    "report": "weakspot.web.services.loop:report",
    "attributes": "weakspot.web.services.attributes:assign",
    "map": "weakspot.web.services.sample_map:lay_out",
    "compare": "weakspot.web.services.compare:compare",
    "search": "weakspot.web.services.generate:search",
    "counterfactual": "weakspot.web.services.generate:counterfactual",
    "study-repairs": "weakspot.web.services.studies:repairs",
}


def work_of(kind: str) -> Work:
    """Return the function of a kind of work.

    Raises:
        ConfigError: if there is none of that name.
    """
    module, _, name = _place(kind).partition(":")
    work: Work = getattr(import_module(module), name)
    return work


def check_arguments(kind: str, given: Arguments) -> dict[str, JsonValue]:
    """Return arguments of a kind of work as its model has them, before a process is started for them.

    Raises:
        ConfigError: if there is no such kind, or with everything that is wrong with the arguments.
    """
    _place(kind)
    try:
        written = json.dumps(given, allow_nan=False, ensure_ascii=False).encode()
    except (ValueError, RecursionError) as error:
        raise ConfigError(
            "The arguments of the work hold something that is no text or number.", where="arguments"
        ) from error
    if len(written) > MAX_ARGUMENTS_LENGTH or rb"\u0000" in written:
        raise ConfigError(
            "The arguments of the work are too long, or hold a zero character.", where="arguments"
        )
    try:
        return ARGUMENTS[kind].model_validate(given).model_dump(mode="json", exclude_defaults=True)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(["arguments", *(str(part) for part in first["loc"])])
        raise ConfigError(
            f"Work of the kind {kind!r} cannot be started with this.",
            where=where,
            fix=field_words(first),
        ) from error


def _place(kind: str) -> str:
    if kind not in KINDS:
        raise ConfigError(
            "There is no such kind of work.", where="kind", fix=f"Choose one of {list(KINDS)}."
        )
    return KINDS[kind]
