"""Which images of a class show its object in a colour that words name."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from weakspot.core.arrays import FloatArray, IntArray, unit_rows
from weakspot.core.assistants import EmbedTexts
from weakspot.generation.service.background_words import FEWEST_IMAGES, Likeness
from weakspot.lexicon.captions import Caption, noun_of


@dataclass(frozen=True, kw_only=True, eq=False)
class ColourWords:
    """Images of one class against colours: an image shows the colour that suits it better than all others, in two ways.

    How a colour looks depends on the light and on the things themselves: green apples in a shop are nearer to yellow than to a
    painter's green. So a colour is taken from the images that words find, not from a table, where there are enough of them.

    Args:
        embeddings: unit vectors of the images [n, d].
        class_name: what they show.
        colours: all that compete.
        embed_texts: phrases to embeddings of the same space.
    """

    embeddings: FloatArray
    class_name: str
    colours: Sequence[str]
    embed_texts: EmbedTexts

    def rows(self, colour: str) -> IntArray:
        """Return the images that show a colour, surest first; none if they are fewer than FEWEST_IMAGES."""
        place = list(self.colours).index(colour)
        found = np.flatnonzero(self._likeness.best() == place)
        if len(found) < FEWEST_IMAGES:
            return np.zeros(0, dtype=np.int64)
        return found[np.argsort(-self._likeness.compared[found, place], kind="stable")]

    @cached_property
    def _likeness(self) -> Likeness:
        noun = noun_of(self.class_name)
        phrases = [Caption(noun=noun, adjective=colour).phrase for colour in self.colours]
        return Likeness(
            plain=unit_rows(np.nan_to_num(self.embeddings)) @ unit_rows(self.embed_texts(phrases)).T
        )
