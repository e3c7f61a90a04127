"""Images that a finding could do with."""

from dataclasses import dataclass

from weakspot.repair.advice.forecast import Forecast
from weakspot.repair.advice.kinds import ImageKind
from weakspot.repair.advice.pool_choice import PoolChoice

LEAST_GAIN = 0.05
MOST_LOST = 0.5


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
    def moves_errors(self) -> bool:
        """Return whether more than half of what is gained on these images is expected to be lost on others."""
        if self.forecast is None:
            return False
        n_kind = len(self.kind.rows)
        n_others = len(self.kind.discovery) - n_kind
        lost = -self.forecast.elsewhere * n_others
        return lost > MOST_LOST * max(self.forecast.gain * n_kind, 0.0)

    @property
    def may_help(self) -> bool:
        """Return whether more images are worth having: a gain is expected that others do not pay for, or nothing is known of it."""
        if self.forecast is None:
            return True
        is_gain = self.forecast.helps or self.forecast.gain >= LEAST_GAIN
        return is_gain and not self.moves_errors
