"""An engine whose workers read remote images in a given way, wherever they are."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from weakspot.core.roles import BatchWork, Engine, Item, Result
from weakspot.media.remote import RemoteReading, reading_as


@dataclass(frozen=True, kw_only=True)
class ReadingEngine:
    """Sends along with the work how remote images are read, so that neither globals nor the environment have to be changed.

    Args:
        engine: does the work.
        reading: how its workers read.
    """

    engine: Engine
    reading: RemoteReading

    def map(
        self,
        function: Callable[[Item], Result],
        items: Iterable[Item],
        *,
        lost: Callable[[Item], Result] | None = None,
    ) -> Iterator[Result]:
        """Yield `function(item)` for every item, as of `Engine`."""
        return self.engine.map(partial(_call, self.reading, function), items, lost=lost)

    def map_batches(
        self,
        build: Callable[[], BatchWork[Item, Result]],
        items: Iterable[Item],
        *,
        batch_size: int,
        lost: Callable[[Item], Result] | None = None,
    ) -> Iterator[Result]:
        """Yield what `build().run` makes of every batch, as of `Engine`."""
        built = partial(_ReadingWork, self.reading, build)
        return self.engine.map_batches(built, items, batch_size=batch_size, lost=lost)


def _call(reading: RemoteReading, function: Callable[[Item], Result], item: Item) -> Result:
    with reading_as(reading):
        return function(item)


class _ReadingWork:
    def __init__(self, reading: RemoteReading, build: Callable[[], BatchWork[Any, Any]]) -> None:
        self._reading = reading
        with reading_as(reading):
            self._work = build()

    def prepare(self, item: Any) -> object:
        with reading_as(self._reading):
            return self._work.prepare(item)

    def run(self, ready: Sequence[Any]) -> Any:
        with reading_as(self._reading):
            return self._work.run(ready)
