"""Where in a pool a strategy looks."""

from dataclasses import dataclass
from typing import get_args

from weakspot.repair.pool.added import refuse_unknown
from weakspot.repair.pool.candidates import Within


@dataclass(frozen=True, kw_only=True)
class PoolScope:
    """What strategies have in common that can look at the whole pool or inside slices.

    Args:
        within: the whole `pool`, or only what is inside the `slices`.
    """

    within: Within = "pool"

    is_baseline = False

    def __post_init__(self) -> None:
        """Refuse settings that cannot mean anything."""
        refuse_unknown("within", self.within, get_args(Within))

    @property
    def place(self) -> str:
        """Return where it looks, in words."""
        return "inside the slices" if self.within == "slices" else "in the whole pool"
