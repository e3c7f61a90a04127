"""Long work that people start from a page: each kind is a function of the project, arguments and a progress callback.

It runs in a process of its own and may be ended at any moment, so it must leave nothing half-done and go on where it was when it is
started again. What it returns is small and can be written as JSON: ids and figures, never samples.
"""

import json
from collections.abc import Callable, Mapping
from importlib import import_module

from pydantic import JsonValue, ValidationError

from weakspot.app.browsing.work_arguments import ARGUMENTS
from weakspot.app.project import Project
from weakspot.core.errors import ConfigError
from weakspot.core.run import StageProgress

LONGEST_ARGUMENTS = 20_000

Arguments = Mapping[str, JsonValue]
Work = Callable[[Project, Arguments, StageProgress], dict[str, JsonValue]]

KINDS: dict[str, str] = {
    "run": "weakspot.app.browsing.loop_work:run",
    "repair": "weakspot.app.browsing.loop_work:repair",
    "report": "weakspot.app.browsing.loop_work:report",
    "attributes": "weakspot.app.browsing.attribute_work:assign",
    "map": "weakspot.app.browsing.map_work:lay_out",
    "compare": "weakspot.app.browsing.compare_work:compare",
    "search": "weakspot.app.browsing.drawing_work:search",
    "counterfactual": "weakspot.app.browsing.drawing_work:counterfactual",
    "study-repairs": "weakspot.app.browsing.study_work:repairs",
}


def work_of(kind: str) -> Work:
    """Return the function of a kind of work.

    Raises:
        ConfigError: if there is none of that name.
    """
    module, _, name = _place(kind).partition(":")
    work: Work = getattr(import_module(module), name)
    return work


def checked_arguments(kind: str, given: Arguments) -> dict[str, JsonValue]:
    """Return arguments of a kind of work as its model has them, before a process is started for them.

    Raises:
        ConfigError: if there is no such kind, or with everything that is wrong with the arguments.
    """
    _place(kind)
    try:
        written = json.dumps(given, allow_nan=False, ensure_ascii=False).encode()
    except (ValueError, RecursionError) as error:
        raise ConfigError("The arguments of the work hold something that is no text or number.", where="arguments") from error
    if len(written) > LONGEST_ARGUMENTS or rb"\u0000" in written:
        raise ConfigError("The arguments of the work are too long, or hold a zero character.", where="arguments")
    try:
        return ARGUMENTS[kind].model_validate(given).model_dump(mode="json", exclude_defaults=True)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(["arguments", *(str(part) for part in first["loc"])])
        raise ConfigError(f"Work of the kind {kind!r} cannot be started with this.", where=where, fix=first["msg"]) from error


def _place(kind: str) -> str:
    if kind not in KINDS:
        raise ConfigError("There is no such kind of work.", where="kind", fix=f"Choose one of {list(KINDS)}.")
    return KINDS[kind]
