"""A paper's protocol before it is known on what it runs: the stand-in, or the data set that a folder holds."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from weakspot_lab.reproduce.expected_files import DataSet, require_data
from weakspot_lab.reproduce.figures import Measured, read_figures
from weakspot_lab.reproduce.protocol import PaperTable, Protocol, Results, Step, StepResult
from weakspot_lab.reproduce.request import ReproduceRequest


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
        measured: as of a protocol.
        tables: as of a protocol.
        plots: as of a protocol.
        notes: as of a protocol.
    """

    key: str
    name: str
    sets: tuple[DataSet, ...]
    stand_in_words: str
    stand_in_steps: Callable[[ReproduceRequest], Sequence[Step]]
    given_words: Callable[[ReproduceRequest, DataSet], str]
    given_steps: Callable[[ReproduceRequest, DataSet], Sequence[Step]]
    measured: Callable[[Results], Mapping[str, Measured]]
    tables: Callable[[Results], Sequence[PaperTable]]
    plots: Callable[[Results], Mapping[str, str]]
    notes: Callable[[Results], Sequence[str]] = lambda _results: ()

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
            measured=self.measured,
            tables=self.tables,
            plots=self.plots,
            notes=self.notes,
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
