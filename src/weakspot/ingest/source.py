"""What every source of samples can do."""

from collections.abc import Iterator
from typing import Protocol, runtime_checkable

from weakspot.core.dataset import RawSample


@runtime_checkable
class SampleSource(Protocol):
    """Samples in an order that never changes, read as a stream.

    Reading needs memory for a bounded number of samples, and can begin again anywhere, so that a killed run goes on.
    """

    @property
    def kind(self) -> str:
        """Which kind of source it is, for example `image-folder`."""

    @property
    def location(self) -> str:
        """Where it is, for people."""

    def fingerprint(self) -> str:
        """Return 32 hexadecimal digits that change when the source does."""

    def count(self) -> int | None:
        """Return the number of samples, or None when only reading to the end can tell."""

    def read(self, start: int = 0) -> Iterator[RawSample]:
        """Yield samples from position `start` on.

        Raises:
            DataError: listing everything that is wrong with the source, before the first sample.
        """
