"""What a search asks of the world: images of a prompt with what the classifier says of them, their embeddings, and captions."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from weakspot.core.arrays import FloatArray
from weakspot.core.seeding import child_seed


@dataclass(frozen=True, kw_only=True, eq=False)
class SampledImages:
    """Some images of one prompt that passed the quality check, in the order of the series.

    Args:
        keys: the images, by content hash.
        probabilities: what the classifier says of them [n, c], columns in the order of the sampler's class names.
        n_asked: how many were ordered; the others were rejected. Fewer than were wanted: the series is at its end.
        rejected: how many each quality check rejected.
        parents: the sample whose object each image shows, where it was composed from a user's own; empty: nothing is known.
    """

    keys: tuple[str, ...]
    probabilities: FloatArray
    n_asked: int
    rejected: Mapping[str, int]
    parents: tuple[str, ...] = ()


def place_seed(seed: int, class_name: str, prompt: str, place: int) -> int:
    """Return the seed of a place in the series of a prompt; other prompts have other seeds, so that their images are independent.

    >>> place_seed(0, "fly", "a fly.", 1) == place_seed(0, "fly", "a fly. it is dark.", 1)
    False
    """
    return child_seed(seed, "search", class_name, prompt, str(place))


class Sampler(Protocol):
    """Generates from the series of images that every prompt has: the same place in it is always the same image.

    What was generated is kept, so that asking again costs nothing and a search that was interrupted goes on where it was.
    """

    @property
    def class_names(self) -> tuple[str, ...]:
        """The classes, in the order of the probability columns."""

    @property
    def caption_source(self) -> str:
        """Who captions: the id of a captioner, or that captions are assembled from words ranked by the embedder."""

    def generate(self, prompt: str, class_name: str, *, first: int, n: int) -> SampledImages:
        """Return places `first` to `first + n` of the series of a prompt; fewer where it ends.

        Raises:
            RefusedPromptError: if the generator cannot generate what the prompt says.
            ModelError: if it can generate nothing at all any more.
        """

    def embeddings(self, keys: Sequence[str]) -> FloatArray:
        """Return unit vectors [n, d] of images that were generated."""

    def embed_texts(self, texts: Sequence[str]) -> FloatArray:
        """Return unit vectors [m, d] of phrases in the same space."""

    def completions(self, keys: Sequence[str], *, beginning: str) -> list[str]:
        """Return what follows the beginning in a caption of each image, in short sentences; empty where nothing is known."""

    def likelihoods(self, keys: Sequence[str], captions: Sequence[str]) -> FloatArray | None:
        """Return log P(caption | image) [n, m], or None when the captioner cannot say."""


@runtime_checkable
class KnowsControls(Protocol):
    """A sampler whose generator can draw all that a change does to an image but the change itself."""

    def control_for(self, prompt: str) -> str:
        """Return what to say instead of the change; empty if there is nothing to control for."""
