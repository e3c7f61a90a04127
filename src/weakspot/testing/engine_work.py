"""Work for checks of engines, at module level, so that workers in other processes can import it."""

import os
import signal
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from weakspot.core.arrays import FloatArray
from weakspot.core.errors import MissingExtraError

N_ITEMS = 40
BAD_ITEM = 7


def doubled_in_odd_time(number: int) -> int:
    """Return twice the number, small numbers later than large ones."""
    time.sleep(0.002 * (N_ITEMS - number % N_ITEMS) / N_ITEMS)
    return 2 * number


def refusing_seven(number: int) -> int:
    if number == BAD_ITEM:
        raise KeyError("seven")
    return number


class CountedNumbers:
    """Endless numbers that know how many were taken."""

    def __init__(self) -> None:
        self.taken = 0

    def __iter__(self) -> Iterator[int]:
        """Yield 1, 2, 3 and so on."""
        while True:
            self.taken += 1
            yield self.taken


@dataclass(frozen=True, kw_only=True)
class RunBatch:
    """What `NumberWork` makes of a batch.

    Args:
        doubled: twice the numbers of the batch.
        built: names the work that ran it.
        process: where.
    """

    doubled: tuple[int, ...]
    built: str
    process: int


@dataclass(kw_only=True)
class NumberWork:
    """Doubles numbers in batches.

    Args:
        refused_by_prepare: a number that cannot be prepared.
        refused_by_run: a number whose batch cannot be run.
    """

    refused_by_prepare: int | None = None
    refused_by_run: int | None = None
    built: str = field(default_factory=lambda: uuid.uuid4().hex)

    def prepare(self, item: int) -> int:
        if item == self.refused_by_prepare:
            raise KeyError("prepare")
        return doubled_in_odd_time(item)

    def run(self, ready: Sequence[int]) -> RunBatch:
        if self.refused_by_run is not None and 2 * self.refused_by_run in ready:
            raise LookupError("run")
        return RunBatch(doubled=tuple(ready), built=self.built, process=os.getpid())


@dataclass(frozen=True, kw_only=True)
class Deadly:
    """Doubles numbers, but kills its own process on some.

    Args:
        numbers: on which to kill.
        marks: folder that remembers each death; empty: kill every time, else the first time only.
        then: what to do instead of killing, for other ways to die.
    """

    numbers: tuple[int, ...]
    marks: str = ""
    then: Callable[[int], int] | None = None

    def __call__(self, number: int) -> int:
        if number in self.numbers and self._is_due(number):
            if self.then is not None:
                return self.then(number)
            os.kill(os.getpid(), signal.SIGKILL)
        return 2 * number

    def _is_due(self, number: int) -> bool:
        if not self.marks:
            return True
        try:
            Path(self.marks, str(number)).touch(exist_ok=False)
        except FileExistsError:
            return False
        return True


@dataclass(frozen=True, kw_only=True)
class DeadlyWork:
    """Sums of batches of numbers, prepared by a function that may kill its process."""

    function: Callable[[int], int]

    def prepare(self, item: int) -> int:
        return self.function(item)

    def run(self, ready: Sequence[int]) -> list[int]:
        return list(ready)


def slowly_doubled(number: int) -> int:
    """Return twice the number after a moment, long enough for a worker to be killed meanwhile."""
    time.sleep(0.02)
    return 2 * number


def hungry(number: int) -> int:
    """Return the number after taking far more memory than a bounded worker has."""
    return len(bytes(8 * 2**30)) * 0 + number


def asking_for_torch(_number: int) -> int:
    """Raise an error whose constructor asks for more than its message."""
    raise MissingExtraError("torch", extra="torch", purpose="Checks")


class OnnxWork:
    """Puts random images of 64 x 64, one a number, through an ONNX graph with the input `pixels`."""

    def __init__(self, path: str) -> None:
        import onnxruntime

        self._session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])

    def prepare(self, item: int) -> FloatArray:
        return np.random.default_rng(item).normal(size=(3, 64, 64)).astype(np.float32)

    def run(self, ready: Sequence[FloatArray]) -> FloatArray:
        rows: FloatArray = self._session.run(None, {"pixels": np.stack(ready)})[0]
        return rows
