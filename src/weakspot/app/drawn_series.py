"""The series of pictures that every prompt has, drawn for one project and kept."""

from dataclasses import dataclass, field

import numpy as np

from weakspot.app.drawn_outcomes import DrawnOutcomes
from weakspot.core.drawn import DrawnPicture, PictureOrder, rejections
from weakspot.search.sampling import Draws, place_seed


@dataclass(frozen=True, kw_only=True, eq=False)
class DrawnSeries:
    """Draws pictures of prompts and asks the project's classifier; what was drawn is known by content hash.

    Args:
        outcomes: draws and asks.
        seed: of the project; the same place of a series is always the same picture.
        drawn: every picture that passed the gate, by content hash.
    """

    outcomes: DrawnOutcomes
    seed: int
    drawn: dict[str, DrawnPicture] = field(default_factory=dict)

    @property
    def class_names(self) -> tuple[str, ...]:
        """The classes, in the order of the probability columns."""
        return self.outcomes.class_names

    def draw(self, prompt: str, class_name: str, *, first: int, n: int) -> Draws:
        """Return places `first` to `first + n` of the series of a prompt.

        Raises:
            RefusedPromptError: if the generator cannot draw what the prompt says.
        """
        orders = [
            PictureOrder(class_name=class_name, prompt=prompt, seed=place_seed(self.seed, class_name, prompt, place))
            for place in range(first, first + n)
        ]
        made = self.outcomes.draw(orders)
        kept = {one.content_hash: one for one in made if one.is_kept}
        self.drawn.update(kept)
        keys = tuple(kept)
        return Draws(
            keys=keys, probabilities=np.asarray(self.outcomes.probabilities(keys)), n_asked=len(orders), rejected=rejections(made)
        )
