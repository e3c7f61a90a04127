"""Long work that people start from a page: each kind is a function of the project, arguments and a progress callback.

It runs in a process of its own and may be ended at any moment, so it must leave nothing half-done and go on where it was when it is
started again. What it returns is small and can be written as JSON: ids and figures, never samples.
"""

from collections.abc import Callable, Mapping
from importlib import import_module

from pydantic import JsonValue

from weakspot.app.project import Project
from weakspot.core.errors import ConfigError
from weakspot.core.run import StageProgress

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
    if kind not in KINDS:
        raise ConfigError(f"There is no work called {kind!r}.", given=kind, fix=f"Choose one of {list(KINDS)}.")
    module, _, name = KINDS[kind].partition(":")
    work: Work = getattr(import_module(module), name)
    return work
