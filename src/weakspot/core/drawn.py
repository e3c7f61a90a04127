"""Orders for generated pictures, and what came of them."""

from collections import Counter
from collections.abc import Iterable

from pydantic import Field

from weakspot.core.record import Record

PASS = "pass"


class PictureOrder(Record):
    """One picture to be made. The same order with the same generator is the same picture.

    Args:
        class_name: what it is to show.
        prompt: the words it is made from.
        seed: decides what the words leave open.
    """

    class_name: str
    prompt: str
    seed: int


class DrawnPicture(Record):
    """An order and what came of it; a picture is generated for ever and never verified on.

    Args:
        order: what was asked for.
        generator_id: who was asked.
        content_hash: sha256 of the encoded picture; empty when none came.
        file: where it is, relative to the folder it is kept in; empty when none came.
        parents: ids of the samples that it was made from, for generators that compose.
        verdicts: what every gate said of it: `pass`, or why it is rejected.
    """

    order: PictureOrder
    generator_id: str
    content_hash: str = ""
    file: str = ""
    parents: tuple[str, ...] = ()
    verdicts: dict[str, str] = Field(default_factory=dict)

    @property
    def rejected_by(self) -> str:
        """Return the first gate that rejected it, empty if it may be used."""
        return next((gate for gate, said in self.verdicts.items() if said != PASS), "")

    @property
    def is_kept(self) -> bool:
        """Return whether it may be used."""
        return bool(self.content_hash) and not self.rejected_by


def rejections(drawn: Iterable[DrawnPicture]) -> dict[str, int]:
    """Return how many pictures each gate rejected, most first."""
    return dict(Counter(one.rejected_by for one in drawn if one.rejected_by).most_common())
