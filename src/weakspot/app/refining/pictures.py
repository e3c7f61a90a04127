"""Pictures to be drawn, and what a classifier makes of them, as the arms of a refinement see both."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from PIL import Image

from weakspot.core.arrays import FloatArray
from weakspot.core.errors import RefusedPromptError


class Prompt(NamedTuple):
    """Words, and the class that pictures made from them show."""

    class_name: str
    text: str


@dataclass(frozen=True, kw_only=True)
class Wanted:
    """Pictures of one prompt that an arm trains on.

    Args:
        prompt: what is drawn.
        n_pictures: how many.
        weight: how much they count together, beside those of other prompts of the arm.
    """

    prompt: Prompt
    n_pictures: int
    weight: float


class Pictures(Protocol):
    """A generator's pictures, each drawn once for all arms and models. The first n of a prompt are always the same."""

    @property
    def generator_id(self) -> str:
        """Who draws."""

    def refusals(self, prompts: Sequence[Prompt]) -> Mapping[Prompt, RefusedPromptError]:
        """Return the prompts that the generator cannot draw, and what it says of them."""

    def draw(self, wanted: Mapping[Prompt, int]) -> None:
        """Draw so many pictures of every prompt."""

    def features(self, model: str, prompt: Prompt, n_pictures: int) -> FloatArray:
        """Return a model's features [n, d] of the first pictures of a prompt, without those that were rejected."""

    def shown(self, prompt: Prompt, n_pictures: int) -> list[Image.Image]:
        """Return some kept pictures of a prompt, to be looked at."""

    def rejected(self) -> dict[str, int]:
        """Return how many pictures each gate rejected."""
