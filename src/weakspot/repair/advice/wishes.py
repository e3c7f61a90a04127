"""Images that a finding could do with."""

from dataclasses import dataclass

from weakspot.repair.advice.forecast import Forecast
from weakspot.repair.advice.kinds import ImageKind
from weakspot.repair.advice.pool_choice import PoolChoice

LEAST_GAIN = 0.05


@dataclass(frozen=True, kw_only=True, eq=False)
class Wish:
    """Images that a finding could do with.

    Args:
        kind: what they are to show.
        choice: what the pool has of it.
        n_wanted: how many; None if that cannot be said.
        forecast: what they will bring, None if that cannot be said.
        why_none: why not.
    """

    kind: ImageKind
    choice: PoolChoice
    n_wanted: int | None = None
    forecast: Forecast | None = None
    why_none: str = ""

    @property
    def may_help(self) -> bool:
        """Return whether more images are worth having: a gain is expected, or nothing is known of it."""
        return self.forecast is None or self.forecast.helps or self.forecast.gain >= LEAST_GAIN
