"""A protocol: steps that measure, and how their results become the paper's figures, tables and plots."""

import importlib
import pkgutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from weakspot.core.arrays import child_seed, generator
from weakspot.core.errors import ConfigError
from weakspot.core.record import Record
from weakspot_lab.reproduce.figures import Measured, PaperFigures
from weakspot_lab.reproduce.request import ReproduceRequest

Value = TypeVar("Value")
StepResult = dict[str, Any]
Results = Mapping[str, StepResult]


@dataclass(kw_only=True)
class Context:
    """What a step may use.

    Args:
        request: what is asked for.
        results: what earlier steps gave, by name; the same whether they ran now or before an interruption.
    """

    request: ReproduceRequest
    results: dict[str, StepResult] = field(default_factory=dict)
    _shared: dict[str, Any] = field(default_factory=dict, repr=False)

    def random(self, *names: str) -> np.random.Generator:
        """Return the generator of a named purpose: the same for the same seed, whatever ran before."""
        return generator(self.request.seed, "reproduce", self.request.paper, *names)

    def seed_of(self, *names: str) -> int:
        return child_seed(self.request.seed, "reproduce", self.request.paper, *names) % 2**31

    def shared(self, name: str, build: Callable[[], Value]) -> Value:
        """Return something that several steps need; made once a process, so it must follow from the request alone."""
        if name not in self._shared:
            self._shared[name] = build()
        found: Value = self._shared[name]
        return found


@dataclass(frozen=True, kw_only=True)
class Step:
    """One step of a protocol.

    Args:
        name: unique in the protocol; the name of its file.
        seconds: about how long it takes on one idle core.
        work: measures; what it returns goes through JSON, so that a resumed run reads the same.
    """

    name: str
    seconds: float
    work: Callable[[Context], StepResult]


class PaperTable(Record):
    """A table in the form that the paper prints it.

    Args:
        title: with the number in the paper.
        header: columns.
        rows: texts and numbers.
        note: below it.
    """

    title: str
    header: tuple[str, ...]
    rows: tuple[tuple[str | float | None, ...], ...]
    note: str = ""


@dataclass(frozen=True, kw_only=True)
class Protocol:
    """A paper's protocol.

    Args:
        stated: what the paper states.
        data_words: on what it runs, in a sentence; for a stand-in, what stands for what.
        steps: in order.
        measured: what was measured for every figure of the paper, by key.
        tables: tables in the paper's own form.
        plots: SVG texts by file name.
        notes: what to know of the run as a whole, from its results.
    """

    stated: PaperFigures
    data_words: str
    steps: tuple[Step, ...]
    measured: Callable[[Results], Mapping[str, Measured]]
    tables: Callable[[Results], Sequence[PaperTable]]
    plots: Callable[[Results], Mapping[str, str]]
    notes: Callable[[Results], Sequence[str]] = lambda _results: ()

    @property
    def paper(self) -> str:
        return self.stated.paper

    @property
    def seconds(self) -> float:
        return sum(step.seconds for step in self.steps)


def papers() -> tuple[str, ...]:
    """Return the papers whose protocol is there: folders with a module `protocol`."""
    here = Path(__file__).parent
    return tuple(
        sorted(
            one.name
            for one in pkgutil.iter_modules([str(here)])
            if one.ispkg and (here / one.name / "protocol.py").is_file()
        )
    )


def open_protocol(request: ReproduceRequest) -> Protocol:
    """Return the protocol of a paper, for the data that is given.

    Raises:
        ConfigError: if there is no such paper, or neither data nor a stand-in is asked for.
        DataError: if files of the data are missing.
    """
    if request.paper not in papers():
        raise ConfigError(
            "There is no such paper.",
            where="weakspot lab reproduce",
            given=request.paper,
            fix=f"Choose from {', '.join(papers())}, or page.",
        )
    if request.is_stand_in and request.data is not None:
        raise ConfigError(
            "A stand-in needs no data.",
            where="--stand-in, --data",
            given=str(request.data),
            fix="Give one of the two.",
        )
    module = importlib.import_module(f"weakspot_lab.reproduce.{request.paper}.protocol")
    found: Protocol = module.protocol(request)
    return found
