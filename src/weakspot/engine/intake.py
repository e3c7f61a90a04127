"""Items of the caller, taken as needed."""

from collections.abc import Iterable
from typing import Generic

from weakspot.core.errors import ConfigError
from weakspot.core.roles import Item


class Intake(Generic[Item]):
    """Takes items from their source; an error of the source waits until everything before it is done."""

    def __init__(self, items: Iterable[Item]) -> None:
        self._items = iter(items)
        self._error: Exception | None = None
        self.is_over = False

    def take(self, count: int) -> list[Item]:
        """Return the next items; fewer than asked for only at the end."""
        taken: list[Item] = []
        while len(taken) < count and not self.is_over:
            try:
                taken.append(next(self._items))
            except StopIteration:
                self.is_over = True
            except Exception as error:  # noqa: BLE001 - raised in its turn
                self._error, self.is_over = error, True
        return taken

    def take_batch(self, size: int) -> list[Item]:
        """Return a whole batch, or the last short one; a batch that an error of the source cut off is left out."""
        taken = self.take(size)
        return [] if self._error is not None and len(taken) < size else taken

    def raise_error(self) -> None:
        """Raise the error of the source, if there was one."""
        if self._error is not None:
            raise self._error


def refuse_negative(engine: str, **settings: float) -> None:
    """Raise a ConfigError if a setting of an engine is negative."""
    if any(value < 0 for value in settings.values()):
        raise ConfigError(f"The settings of the engine {engine} must not be negative.", given=settings)


def refuse_empty_batches(batch_size: int) -> None:
    """Raise a ConfigError unless a batch holds at least one item."""
    if batch_size < 1:
        raise ConfigError("A batch must hold at least one item.", where="batch_size", given=batch_size)
