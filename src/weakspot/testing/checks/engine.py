"""Checks of engines. The functions stand at module level, so that engines in other processes can be checked too."""

import time
from collections.abc import Iterator
from itertools import islice

from weakspot.core.roles import Engine
from weakspot.testing.checks.expectation import Check, ConformanceError, Factory, expect
from weakspot.testing.checks.parts import ANY_PART, implements

MOST_UNDER_WAY = 2_000
N_ITEMS = 40
BAD_ITEM = 7


def doubled_in_odd_time(number: int) -> int:
    """Return twice the number, small numbers later than large ones."""
    time.sleep(0.002 * (N_ITEMS - number % N_ITEMS) / N_ITEMS)
    return 2 * number


def refusing_seven(number: int) -> int:
    """Return the number, but for seven."""
    if number == BAD_ITEM:
        raise KeyError("seven")
    return number


class _Counted:
    """Endless numbers that know how many were taken."""

    def __init__(self) -> None:
        self.taken = 0

    def __iter__(self) -> Iterator[int]:
        while True:
            self.taken += 1
            yield self.taken


def results_come_in_order(factory: Factory) -> None:
    """Results stand in the order of items, whichever is ready first."""
    engine: Engine = factory()
    found = list(engine.map(doubled_in_odd_time, range(N_ITEMS)))
    expect(found == [2 * number for number in range(N_ITEMS)], "Results are lost, doubled or out of order.")


def items_are_taken_as_needed(factory: Factory) -> None:
    """Only a bounded number of items is under way: endless input must work."""
    engine: Engine = factory()
    numbers = _Counted()
    found = list(islice(engine.map(doubled_in_odd_time, iter(numbers)), 5))
    expect(found == [2, 4, 6, 8, 10], "The first results are wrong.")
    expect(numbers.taken <= MOST_UNDER_WAY, f"{numbers.taken} items were taken for 5 results; bound the number under way.")


def errors_reach_the_caller(factory: Factory) -> None:
    """An item's error is raised in its turn, with its type."""
    engine: Engine = factory()
    found: list[int] = []
    try:
        for result in engine.map(refusing_seven, range(N_ITEMS)):
            found.append(result)
    except KeyError:
        expect(found == list(range(BAD_ITEM)), "Results before the error were lost.")
        return
    except Exception as error:
        raise ConformanceError(f"A KeyError of an item arrived as {type(error).__name__}.") from error
    raise ConformanceError("The error of an item was swallowed.")


def errors_of_the_input_reach_the_caller(factory: Factory) -> None:
    """An error while items are read is not swallowed."""
    engine: Engine = factory()
    try:
        list(engine.map(doubled_in_odd_time, map(refusing_seven, range(N_ITEMS))))
    except KeyError:
        return
    raise ConformanceError("The error of the input was swallowed.")


def nothing_in_nothing_out(factory: Factory) -> None:
    """No items: no results."""
    engine: Engine = factory()
    expect(list(engine.map(doubled_in_odd_time, [])) == [], "Results came out of nothing.")


def works_again_after_an_error(factory: Factory) -> None:
    """One engine serves many maps."""
    engine: Engine = factory()
    for _ in range(2):
        try:
            list(engine.map(refusing_seven, [BAD_ITEM]))
        except KeyError:
            expect(list(engine.map(refusing_seven, [1, 2])) == [1, 2], "The engine is of no use after an error.")
            continue
        raise ConformanceError("The error of an item was swallowed.")


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
            works_again_after_an_error,
        )
    },
}
