"""Checks of engines, and work for them at module level, so that workers in other processes can import it."""

import os
import signal
import time
import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import count, islice
from pathlib import Path
from typing import NoReturn

import numpy as np

from weakspot.core.arrays import FloatArray
from weakspot.core.errors import MissingExtraError
from weakspot.core.roles import Engine
from weakspot.testing.part_checks import (
    ANY_PART,
    ConformanceError,
    Factory,
    expect,
    role_checks,
)

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


MAX_UNDER_WAY = 2_000
BATCH = 6
"""Does not divide the number of items: the last batch is short."""


def results_come_in_order(factory: Factory) -> None:
    """Results stand in the order of items, whichever is ready first; nothing is lost while nobody dies."""
    engine: Engine = factory()
    found = list(engine.map(doubled_in_odd_time, range(N_ITEMS), lost=_never))
    expect(
        found == [2 * number for number in range(N_ITEMS)],
        "Results are lost, doubled or out of order.",
    )


def items_are_taken_as_needed(factory: Factory) -> None:
    """Only a bounded number of items is under way: endless input must work."""
    engine: Engine = factory()
    numbers = count(1)
    found = list(islice(engine.map(doubled_in_odd_time, numbers), 5))
    taken = next(numbers) - 1
    expect(found == [2, 4, 6, 8, 10], "The first results are wrong.")
    expect(
        taken <= MAX_UNDER_WAY,
        f"{taken} items were taken for 5 results; bound the number under way.",
    )


def errors_reach_the_caller(factory: Factory) -> None:
    """An item's error is raised in its turn, with its type; the engine can be used again."""
    engine: Engine = factory()
    found: list[int] = []
    try:
        for result in engine.map(refusing_seven, range(N_ITEMS)):
            found.append(result)
    except KeyError:
        expect(found == list(range(BAD_ITEM)), "Results before the error were lost.")
        expect(
            list(engine.map(refusing_seven, [1, 2])) == [1, 2],
            "The engine is of no use after an error.",
        )
        return
    except Exception as error:
        raise ConformanceError(
            f"A KeyError of an item arrived as {type(error).__name__}."
        ) from error
    raise ConformanceError("The error of an item was swallowed.")


def errors_of_the_input_reach_the_caller(factory: Factory) -> None:
    """An error while items are read is raised after the results of everything read before."""
    engine: Engine = factory()
    found: list[int] = []
    try:
        for result in engine.map(doubled_in_odd_time, map(refusing_seven, range(N_ITEMS))):
            found.append(result)
    except KeyError:
        expect(
            found == [2 * number for number in range(BAD_ITEM)],
            "Results before the error of the input were lost.",
        )
        return
    raise ConformanceError("The error of the input was swallowed.")


def nothing_in_nothing_out(factory: Factory) -> None:
    """No items: no results."""
    engine: Engine = factory()
    expect(list(engine.map(doubled_in_odd_time, [])) == [], "Results came out of nothing.")
    expect(
        list(engine.map_batches(NumberWork, [], batch_size=BATCH)) == [],
        "Batches came out of nothing.",
    )


def batches_follow_the_order_of_items(factory: Factory) -> None:
    """Which items share a batch depends on their order alone; the last batch may be short; work is built once in a worker."""
    engine: Engine = factory()
    found: list[RunBatch] = list(
        engine.map_batches(NumberWork, range(N_ITEMS), batch_size=BATCH, lost=_never)
    )
    doubled = [2 * number for number in range(N_ITEMS)]
    expect(
        [number for batch in found for number in batch.doubled] == doubled,
        "Items are lost, doubled or out of order.",
    )
    sizes = [len(batch.doubled) for batch in found]
    expect(
        sizes == [BATCH] * (N_ITEMS // BATCH) + [N_ITEMS % BATCH],
        f"Batches of {BATCH} have these sizes: {sizes}.",
    )
    n_built = len({(batch.process, batch.built) for batch in found})
    expect(
        n_built == len({batch.process for batch in found}),
        f"The work was built {n_built} times; build it once in a worker.",
    )


def batches_are_taken_as_needed(factory: Factory) -> None:
    """Only a bounded number of batches is under way, and nothing is taken after the caller stopped."""
    engine: Engine = factory()
    numbers = count(1)
    batches = iter(engine.map_batches(NumberWork, numbers, batch_size=BATCH))
    expect(
        next(batches).doubled == tuple(2 * number for number in range(1, BATCH + 1)),
        "The first batch is wrong.",
    )
    batches.close()  # type: ignore[attr-defined]
    taken = next(numbers)
    expect(
        taken <= MAX_UNDER_WAY,
        f"{taken} items were taken for a batch; bound the number under way.",
    )
    (again,) = engine.map_batches(NumberWork, [1], batch_size=BATCH)
    expect(again.doubled == (2,), "The engine is of no use after `close`.")
    expect(next(numbers) == taken + 1, "Items were taken after the caller stopped.")


def errors_of_batches_reach_the_caller(factory: Factory) -> None:
    """Errors of `prepare`, of `run` and of the input are raised in the turn of their batch, with their type."""
    engine: Engine = factory()
    refused = BATCH + 1
    faults = (
        (KeyError, partial(NumberWork, refused_by_prepare=refused), range(N_ITEMS)),
        (LookupError, partial(NumberWork, refused_by_run=refused), range(N_ITEMS)),
        (KeyError, NumberWork, map(refusing_seven, range(N_ITEMS))),
    )
    for kind, build, items in faults:
        found: list[int] = []
        try:
            for batch in engine.map_batches(build, items, batch_size=BATCH):
                found.extend(batch.doubled)
        except Exception as error:  # noqa: BLE001 (whatever it is, the processor can compute)
            expect(
                type(error) is kind,
                f"A {kind.__name__} of a batch arrived as {type(error).__name__}: {error}",
            )
            expect(
                found == [2 * number for number in range(BATCH)],
                "Batches before the error were lost.",
            )
            continue
        raise ConformanceError("The error of a batch was swallowed.")


def _never(item: int) -> NoReturn:
    raise ConformanceError(f"The item {item} was given up although no worker died.")


CHECKS = role_checks(
    Engine,
    ANY_PART,
    results_come_in_order,
    items_are_taken_as_needed,
    errors_reach_the_caller,
    errors_of_the_input_reach_the_caller,
    nothing_in_nothing_out,
    batches_follow_the_order_of_items,
    batches_are_taken_as_needed,
    errors_of_batches_reach_the_caller,
)
