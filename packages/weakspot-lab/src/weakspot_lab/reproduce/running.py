"""Running a protocol: the cost first, every step kept as it is done, tables and plots at the end."""

import hashlib
import json
import time
from collections.abc import Callable
from pathlib import Path

from pydantic import JsonValue, ValidationError

from weakspot.core.errors import ConfigError, StoreError
from weakspot.core.run import StageProgress, no_stage_progress
from weakspot.run.stage_clock import library_versions
from weakspot.store import atomic
from weakspot_lab.reproduce.protocol import Context, Protocol, Step, StepResult
from weakspot_lab.reproduce.request import ReproduceRequest
from weakspot_lab.reproduce.writing import (
    RESULTS,
    Reproduction,
    reproduction_of,
    write_reproduction,
)

STEPS = "steps"
MINUTE = 60.0


def run_protocol(
    protocol: Protocol,
    request: ReproduceRequest,
    *,
    progress: StageProgress = no_stage_progress,
    say: Callable[[str], None] = lambda _text: None,
) -> Reproduction:
    """Run what is not known yet, and write tables, plots and results into the folder.

    Steps that an interrupted run finished are read, not run again; the tables are the same.

    Raises:
        ConfigError: if the folder holds results of another request, or cannot be written.
    """
    try:
        request.out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ConfigError(
            f"The folder cannot be made: {error.strerror}.", where=str(request.out)
        ) from error
    key = _key(request)
    journal = StepJournal(request.out / STEPS, key)
    context = Context(request=request)
    context.results |= _finished(request.out, key)
    context.results |= {
        step.name: found
        for step in protocol.steps
        if (found := journal.known(step.name)) is not None
    }
    _tell_cost(protocol, context, say)
    clock = _Clock(protocol)
    for number, step in enumerate(protocol.steps):
        progress("steps", number, len(protocol.steps))
        if step.name in context.results:
            clock.skip(step)
            continue
        say(
            f"{number + 1} of {len(protocol.steps)}: {step.name}, about {duration(step.seconds)}; "
            f"{clock.left(step)} left"
        )
        begun = time.perf_counter()
        context.results[step.name] = journal.keep(step.name, step.work(context))
        clock.done(step, time.perf_counter() - begun)
    progress("steps", len(protocol.steps), len(protocol.steps))
    made = reproduction_of(protocol, request, context.results, key=key)
    write_reproduction(made, protocol.outcome.plots(context.results), request.out)
    journal.forget()
    return made


def _finished(folder: Path, key: str) -> dict[str, StepResult]:
    """Return the steps of an earlier run that came to its end, if it was asked for the same."""
    try:
        found = Reproduction.model_validate_json((folder / RESULTS).read_bytes())
    except (OSError, ValidationError):
        return {}
    return found.steps if found.key == key else {}


class StepJournal:
    """One file a finished step.

    Args:
        folder: where they are kept.
        key: everything that results depend on; files of another key are passed over.
    """

    def __init__(self, folder: Path, key: str) -> None:
        self._folder = folder
        self._key = key

    def known(self, name: str) -> StepResult | None:
        """Return what a step gave before; None if it has not run, or ran for another request."""
        try:
            entry = atomic.read_json(self._path(name))
        except StoreError:
            return None
        result = entry.get("result")
        return result if entry.get("key") == self._key and isinstance(result, dict) else None

    def keep(self, name: str, result: StepResult) -> StepResult:
        """Write what a step gave, and return it as it will be read."""
        self._folder.mkdir(parents=True, exist_ok=True)
        content: dict[str, JsonValue] = {"key": self._key, "result": result}
        atomic.write_json(self._path(name), content)
        read = json.loads(json.dumps(result, sort_keys=True))
        assert isinstance(read, dict)
        return read

    def forget(self) -> None:
        """Remove the files: the results hold everything."""
        for path in self._folder.glob("*.json"):
            path.unlink()
        if self._folder.is_dir() and not any(self._folder.iterdir()):
            self._folder.rmdir()

    def _path(self, name: str) -> Path:
        return self._folder / f"{name}.json"


class _Clock:
    """How long the rest will take: the estimates, corrected by how long steps took so far."""

    def __init__(self, protocol: Protocol) -> None:
        self._left = protocol.seconds
        self._expected = 0.0
        self._took = 0.0

    def skip(self, step: Step) -> None:
        self._left -= step.seconds

    def done(self, step: Step, seconds: float) -> None:
        self._left -= step.seconds
        self._expected += step.seconds
        self._took += seconds

    def left(self, step: Step) -> str:
        del step
        pace = self._took / self._expected if self._expected else 1.0
        return f"about {duration(self._left * pace)}"


def duration(seconds: float) -> str:
    """Return a time in words.

    >>> duration(0.4), duration(45), duration(200)
    ('1 s', '45 s', '3 min')
    """
    if seconds < 1.5 * MINUTE:
        return f"{max(1, round(seconds))} s"
    return f"{round(seconds / MINUTE)} min"


def _tell_cost(protocol: Protocol, context: Context, say: Callable[[str], None]) -> None:
    n_known = len(context.results)
    left = sum(step.seconds for step in protocol.steps if step.name not in context.results)
    known = f", {n_known} of them known from an earlier run" if n_known else ""
    say(f"{protocol.paper}: {protocol.data_words}")
    say(f"{len(protocol.steps)} steps{known}; about {duration(left)} of one core.")


def _key(request: ReproduceRequest) -> str:
    content = f"{request.key}{library_versions()}"
    return hashlib.sha256(content.encode()).hexdigest()[:32]
