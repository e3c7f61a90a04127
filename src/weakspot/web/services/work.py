"""Long work that people start from a page: each kind is a function of the project and a progress callback.

Its other parameters, by name, are the arguments of the kind, checked against their types before a process is started.

It runs in a process of its own and may be ended at any moment, so it must leave nothing half-done and go on where it was when it is
started again. What it returns is small and can be written as JSON: ids and figures, never samples.
"""

import json
from collections.abc import Callable, Mapping
from functools import cache
from importlib import import_module
from inspect import signature
from typing import Annotated, Any

from pydantic import Field, JsonValue, StringConstraints, ValidationError, create_model

from weakspot.core.errors import ConfigError
from weakspot.core.run import StageProgress
from weakspot.project.project import Project
from weakspot.web.services.view import View, field_words

ClassName = Annotated[str, StringConstraints(min_length=1, max_length=500)]
Caption = Annotated[str, StringConstraints(min_length=1, max_length=300)]
MAX_CAPTIONS, MAX_EACH, MAX_BUDGET = 12, 200, 20_000


Captions = Annotated[tuple[Caption, ...], Field(max_length=MAX_CAPTIONS)]
AgreedCost = Annotated[float, Field(ge=0.0, le=1e6, allow_inf_nan=False)]
"""What a person agreed to pay at most; 0 if nothing."""
Identifier = Annotated[
    str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]*$", max_length=100)
]
"""Ids of runs and slices."""
PartName = Annotated[
    str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9_./-]*$", max_length=200)
]
"""Registered names of methods; those of other packages contain a slash."""
MAX_ARGUMENTS_LENGTH = 20_000

Arguments = Mapping[str, JsonValue]
Work = Callable[..., dict[str, JsonValue]]

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
    if kind not in KINDS:
        raise ConfigError(
            "There is no such kind of work.", where="kind", fix=f"Choose one of {list(KINDS)}."
        )
    module, _, name = KINDS[kind].partition(":")
    work: Work = getattr(import_module(module), name)
    return work


def do_work(
    kind: str, project: Project, given: Arguments, progress: StageProgress
) -> dict[str, JsonValue]:
    return work_of(kind)(project, progress, **dict(_checked(kind, given)))


def check_arguments(kind: str, given: Arguments) -> dict[str, JsonValue]:
    """Return arguments of a kind of work as they are kept, before a process is started for them.

    Raises:
        ConfigError: if there is no such kind, or with everything that is wrong with the arguments.
    """
    return _checked(kind, given).model_dump(mode="json", exclude_defaults=True)


@cache
def _model_of(kind: str) -> type[View]:
    parameters = signature(work_of(kind), eval_str=True).parameters.values()
    fields: dict[str, Any] = {
        one.name: (one.annotation, ... if one.default is one.empty else one.default)
        for one in parameters
        if one.kind is one.KEYWORD_ONLY
    }
    return create_model(f"arguments of {kind}", __base__=View, **fields)


def _checked(kind: str, given: Arguments) -> View:
    model = _model_of(kind)
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
        return model.model_validate(given)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(["arguments", *(str(part) for part in first["loc"])])
        raise ConfigError(
            f"Work of the kind {kind!r} cannot be started with this.",
            where=where,
            fix=field_words(first),
        ) from error
