"""Checks of engines."""

from functools import partial
from itertools import islice

from weakspot.core.roles import Engine
from weakspot.testing.checks.expectation import Check, ConformanceError, Factory, expect
from weakspot.testing.checks.parts import ANY_PART, implements
from weakspot.testing.engine_work import (
    BAD_ITEM,
    N_ITEMS,
    CountedNumbers,
    NumberWork,
    RunBatch,
    doubled_in_odd_time,
    refusing_seven,
)

MOST_UNDER_WAY = 2_000
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
    numbers = CountedNumbers()
    found = list(islice(engine.map(doubled_in_odd_time, iter(numbers)), 5))
    expect(found == [2, 4, 6, 8, 10], "The first results are wrong.")
    expect(
        numbers.taken <= MOST_UNDER_WAY,
        f"{numbers.taken} items were taken for 5 results; bound the number under way.",
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
        engine.map_batches(NumberWork, range(N_ITEMS), batch_size=BATCH, lost=_no_batch)
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
    numbers = CountedNumbers()
    batches = iter(engine.map_batches(NumberWork, iter(numbers), batch_size=BATCH))
    expect(
        next(batches).doubled == tuple(2 * number for number in range(1, BATCH + 1)),
        "The first batch is wrong.",
    )
    expect(
        numbers.taken <= MOST_UNDER_WAY,
        f"{numbers.taken} items were taken for a batch; bound the number under way.",
    )
    batches.close()  # type: ignore[attr-defined]
    taken = numbers.taken
    (again,) = engine.map_batches(NumberWork, [1], batch_size=BATCH)
    expect(again.doubled == (2,), "The engine is of no use after `close`.")
    expect(numbers.taken == taken, "Items were taken after the caller stopped.")


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
        except Exception as error:  # noqa: BLE001 - which one it is, is checked
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


def _never(item: int) -> int:
    raise ConformanceError(f"The item {item} was given up although no worker died.")


def _no_batch(item: int) -> RunBatch:
    raise ConformanceError(f"The item {item} was given up although no worker died.")


CHECKS: dict[str, Check] = {
    "implements_role": implements(Engine),
    **ANY_PART,
    **{
        check.__name__: check
        for check in (
            results_come_in_order,
            items_are_taken_as_needed,
            errors_reach_the_caller,
            errors_of_the_input_reach_the_caller,
            nothing_in_nothing_out,
            batches_follow_the_order_of_items,
            batches_are_taken_as_needed,
            errors_of_batches_reach_the_caller,
        )
    },
}
