"""Orders for generated images, and what came of them."""

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import ClassVar

from pydantic import Field

from weakspot.core.record import Record

PASS = "pass"


class GenerationRequest(Record):
    """One image to be made. The same request with the same generator is the same image.

    Args:
        class_name: what it is to show.
        prompt: the words it is made from.
        seed: decides what the words leave open.
    """

    class_name: str
    prompt: str
    seed: int


class GenerationResult(Record):
    """A request and what came of it; an image is generated for ever and never verified on.

    Args:
        request: what was asked for.
        generator_id: who was asked.
        content_hash: sha256 of the encoded image; empty when none came.
        file: where it is, relative to the folder it is kept in; empty when none came.
        parents: ids of the samples that it was made from, for generators that compose.
        verdicts: what every quality check said of it: `pass`, or why it is rejected.
    """

    earlier_names: ClassVar[Mapping[str, str]] = {"order": "request"}

    request: GenerationRequest
    generator_id: str
    content_hash: str = ""
    file: str = ""
    parents: tuple[str, ...] = ()
    verdicts: dict[str, str] = Field(default_factory=dict)

    @property
    def rejected_by(self) -> str:
        """Return the first quality check that rejected it, empty if it may be used."""
        return next((quality for quality, said in self.verdicts.items() if said != PASS), "")

    @property
    def is_kept(self) -> bool:
        """Return whether it may be used."""
        return bool(self.content_hash) and not self.rejected_by


def rejections(generated: Iterable[GenerationResult]) -> dict[str, int]:
    """Return how many images each quality check rejected, most first."""
    return dict(Counter(one.rejected_by for one in generated if one.rejected_by).most_common())
