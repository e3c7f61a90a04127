"""What a part may be able to do beside its role; each is a Protocol that `weakspot.core.roles` lists too."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from PIL import Image

from weakspot.core.arrays import FloatArray


@runtime_checkable
class KnowsParents(Protocol):
    """An image generator that can say without drawing which of a user's own samples an image would show."""

    def parents_of(self, prompt: str, seed: int) -> tuple[str, ...]:
        """Return the ids of the samples whose objects are shown; empty if it shows none of them.

        Raises:
            RefusedPromptError: if it cannot draw what the prompt says.
            ModelError: if it has no object to draw.
        """


@runtime_checkable
class HasViews(Protocol):
    """An image generator that can show the same object of a user's own images once more, in another way."""

    def seed_of_view(self, seed: int, number: int) -> int:
        """Return the seed of another view of what a seed shows: other crop, light and surroundings; number 0 is the seed itself."""


@runtime_checkable
class HasControls(Protocol):
    """An image generator that can draw an image with all that a change does to it but the change itself."""

    def control_for(self, prompt: str) -> str:
        """Return what to say instead of the change, for example `on its own background`; empty if there is nothing to control for."""


@runtime_checkable
class ChecksPrompts(Protocol):
    """An image generator that can say without drawing whether it can draw what a prompt says."""

    def check_prompt(self, prompt: str) -> None:
        """Do nothing if it can.

        Raises:
            RefusedPromptError: if not; the error names what it can.
        """


@dataclass(frozen=True, kw_only=True)
class Cost:
    """What a service charges.

    Args:
        amount: in the currency.
        currency: for example USD.
        basis: how the amount comes about, in words.
    """

    amount: float
    currency: str
    basis: str


@runtime_checkable
class CostsMoney(Protocol):
    """A part whose use is charged for; what it will cost is shown before it starts."""

    def cost_of(self, n_images: int) -> Cost | None:
        """Return what so many images cost; None if the price is not known."""


@runtime_checkable
class CompletesCaptions(Protocol):
    """A captioner that can go on from a given beginning, in short sentences, so that the caption is about a known label."""

    def complete(self, images: Sequence[Image.Image], *, beginning: str) -> list[str]:
        """Return what follows the beginning, one text of short sentences an image."""


@runtime_checkable
class ScoresCaptions(Protocol):
    """A captioner that can say how likely a given caption is."""

    def log_likelihoods(self, images: Sequence[Image.Image], captions: Sequence[str]) -> FloatArray:
        """Return log P(caption | image) [n, m]."""
