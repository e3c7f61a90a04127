"""Consecutive items that go to a worker together, and how many of them."""

from collections.abc import Collection
from dataclasses import dataclass, field
from itertools import count
from typing import Any, Literal, Protocol

from weakspot.engine.intake import Intake

DEATHS_IN_COMPANY = 1
DEATHS_ALONE = 2
MOST_MACHINES = 20
PARCEL_SECONDS = 0.1
MOST_BATCHES_EACH = 4


@dataclass(eq=False)
class Parcel:
    """Consecutive items, and what came of them.

    Args:
        number: no other parcel of this map has it.
        items: what is sent.
        n_deaths: workers that died with it.
        n_machines: machines that were gone with it.
    """

    number: int
    items: list[Any]
    n_deaths: int = 0
    n_machines: int = 0
    is_done: bool = False
    results: list[Any] = field(default_factory=list)
    error: BaseException | None = None

    def count(self, death: Literal["worker", "machine"]) -> None:
        """Remember that a worker died with it."""
        if death == "worker":
            self.n_deaths += 1
        else:
            self.n_machines += 1

    @property
    def is_given_up(self) -> bool:
        """Whether it is not tried again as it is; machines that are taken away say little about an item."""
        return self.n_deaths >= DEATHS_IN_COMPANY + DEATHS_ALONE or self.n_machines >= MOST_MACHINES


class Pace(Protocol):
    """How large parcels are, and how many a worker has at a time."""

    @property
    def parcels_each(self) -> int:
        """Most parcels that a worker has."""

    @property
    def n_ahead(self) -> int:
        """Parcels that a worker begins before it finishes the one before; 0 if nothing can be done ahead."""

    def next_parcel(self, intake: Intake[Any]) -> Parcel | None:
        """Return the next parcel; None when there is none."""

    def singles(self, parcel: Parcel) -> list[Parcel]:
        """Return a parcel for each item, to be tried alone."""

    def has_room(self, window: Collection[Parcel], n_workers: int) -> bool:
        """Say whether one more parcel may be under way or wait for its turn."""

    def learn(self, n_items: int, seconds: float) -> None:
        """Take into account how long a parcel took."""


class _Numbered:
    def __init__(self) -> None:
        self._numbers = count()

    def parcel(self, items: list[Any]) -> Parcel | None:
        return Parcel(next(self._numbers), items) if items else None

    def singles(self, parcel: Parcel) -> list[Parcel]:
        """Return a parcel for each item, to be tried alone."""
        return [Parcel(next(self._numbers), [item], n_deaths=DEATHS_IN_COMPANY) for item in parcel.items]


class BatchPace(_Numbered):
    """A parcel is a batch; workers prepare the next ones while they run one.

    Args:
        batch_size: items a batch.
        queue_depth: items that may wait for each worker.
    """

    def __init__(self, *, batch_size: int, queue_depth: int) -> None:
        super().__init__()
        self._batch_size = batch_size
        self.parcels_each = min(MOST_BATCHES_EACH, 2 + queue_depth // batch_size)
        self.n_ahead = max(1, self.parcels_each - 2)
        self._spare = queue_depth // batch_size

    def next_parcel(self, intake: Intake[Any]) -> Parcel | None:
        """Return the next batch."""
        return self.parcel(intake.take_batch(self._batch_size))

    def has_room(self, window: Collection[Parcel], n_workers: int) -> bool:
        """Say whether one more batch may be under way or wait for its turn."""
        return len(window) < n_workers * (self.parcels_each + self._spare)

    def learn(self, n_items: int, seconds: float) -> None:
        """Do nothing: which items share a batch depends on their order alone."""


class MapPace(_Numbered):
    """Parcels start with one item and grow until sending them costs little beside doing them.

    Args:
        queue_depth: items that may wait for each worker.
    """

    parcels_each = 2
    n_ahead = 0

    def __init__(self, *, queue_depth: int) -> None:
        super().__init__()
        self._queue_depth = queue_depth
        self._most = max(1, queue_depth // self.parcels_each)
        self._size = 1

    def next_parcel(self, intake: Intake[Any]) -> Parcel | None:
        """Return the next items."""
        return self.parcel(intake.take(self._size))

    def has_room(self, window: Collection[Parcel], n_workers: int) -> bool:
        """Say whether one more parcel may be under way or wait for its turn."""
        return sum(len(parcel.items) for parcel in window) < n_workers * (self.parcels_each + self._queue_depth)

    def learn(self, n_items: int, seconds: float) -> None:
        """Choose the size of the next parcels."""
        fitting = int(PARCEL_SECONDS * n_items / max(seconds, 1e-9))
        self._size = max(1, min(self._most, fitting, 2 * self._size))
