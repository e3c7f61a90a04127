"""A protocol: steps that measure, and how their results become the paper's figures, tables and plots."""

import importlib
import pkgutil
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from weakspot.core.arrays import child_seed, generator
from weakspot.core.errors import ConfigError
from weakspot.core.record import Record
from weakspot_lab.reproduce.expected_files import DataSet, require_data
from weakspot_lab.reproduce.figures import Measured, PaperFigures, read_figures
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
class Outcome:
    """What the results of a protocol's steps come to; steps that were not run are passed over.

    Args:
        measured: what was measured for every figure of the paper, by key.
        tables: tables in the paper's own form.
        plots: SVG texts by file name.
        notes: what to know of the run as a whole.
    """

    measured: Callable[[Results], Mapping[str, Measured]]
    tables: Callable[[Results], Iterable[PaperTable]]
    plots: Callable[[Results], Mapping[str, str]]
    notes: Callable[[Results], Iterable[str]] = lambda _results: ()


@dataclass(frozen=True, kw_only=True)
class Protocol:
    """A paper's protocol on what it runs.

    Args:
        stated: what the paper states.
        data_words: on what it runs, in a sentence; for a stand-in, what stands for what.
        steps: in order.
        outcome: what their results come to.
    """

    stated: PaperFigures
    data_words: str
    steps: tuple[Step, ...]
    outcome: Outcome

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
    paper: Paper = module.PROTOCOL
    return paper.open(request)


@dataclass(frozen=True, kw_only=True, eq=False)
class Paper:
    """What a paper measures, on whatever it runs.

    Args:
        key: its short name, as the command takes it.
        name: as messages call it.
        sets: the data sets that it runs on.
        stand_in_words: what stands for what.
        stand_in_steps: the steps on the stand-in.
        given_words: what takes the place of the paper's models on its own data.
        given_steps: the steps on a data set that is there.
        outcome: what the results of all these steps come to.
    """

    key: str
    name: str
    sets: tuple[DataSet, ...]
    stand_in_words: str
    stand_in_steps: Callable[[ReproduceRequest], Sequence[Step]]
    given_words: Callable[[ReproduceRequest, DataSet], str]
    given_steps: Callable[[ReproduceRequest, DataSet], Sequence[Step]]
    outcome: Outcome

    def open(self, request: ReproduceRequest) -> Protocol:
        """Return the protocol on the stand-in, or the part of it that fits the data given.

        Raises:
            DataError: if files of the data are missing.
        """
        if request.is_stand_in:
            words, steps = self.stand_in_words, self.stand_in_steps(request)
        else:
            found = require_data(request.data, self.sets, paper=self.name)
            words = f"{found.name}, with {self.given_words(request, found)}."
            steps = self.given_steps(request, found)
        return Protocol(
            stated=read_figures(self.key),
            data_words=words,
            steps=tuple(steps),
            outcome=self.outcome,
        )


def each_step(
    kind: str,
    seconds: float,
    work: Callable[..., StepResult],
    values: Iterable[float],
    *,
    argument: str = "number",
) -> tuple[Step, ...]:
    """Return one step a value, named after its kind and the value.

    >>> [one.name for one in each_step("tint", 1.0, dict, (0.5, 1.0), argument="share")]
    ['tint-0.5', 'tint-1']
    """
    return tuple(
        Step(name=f"{kind}-{value:g}", seconds=seconds, work=partial(work, **{argument: value}))
        for value in values
    )
