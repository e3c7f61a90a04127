from dataclasses import dataclass, field

import numpy as np
import pytest

from weakspot.core.errors import ModelError, UnavailableError
from weakspot.run.witnesses import caption_of, tag_captions, tag_values


@dataclass
class Colourist:
    kind: str = "masks"

    def phrase(self, said):
        return f"{said} object"

    def tags(self, said):
        return {"object colour": said, "length": str(len(said))}


@dataclass
class Said:
    """What witnesses said, by kind; a kind that is not there cannot be asked."""

    witnesses: tuple
    texts: dict
    problems: dict = field(default_factory=dict)

    def try_said(self, witness, rows):
        if witness.kind not in self.texts:
            self.problems[witness.kind] = str(UnavailableError("It is not there."))
            return [""] * len(rows)
        return [self.texts[witness.kind][row] for row in rows]

    def notes(self):
        return tuple(self.problems.values())


def test_tag_captions__of_what_each_is_sure_of():
    seeing = Said((Colourist(), Colourist(kind="scenes")), {"masks": ["green", "red", ""]})

    assert tag_captions(seeing, np.array([0, 2, 1])) == [
        "a photo, green object",
        "",
        "a photo, red object",
    ]


def test_tag_captions__nobody_can_be_asked():
    with pytest.raises(ModelError, match="not there"):
        tag_captions(Said((Colourist(),), {}), np.array([0]))


def test_tag_values__one_a_row():
    seeing = Said((Colourist(), Colourist(kind="scenes")), {"masks": ["green", "", "red"]})

    assert tag_values(seeing, np.arange(3)) == {
        "object colour": ["green", "", "red"],
        "length": ["5", "", "3"],
    }


def test_caption_of__parts_in_their_places():
    assert (
        caption_of({"objects": "orange", "scenes": "outdoors"}) == "a photo of an orange, outdoors"
    )
    assert (
        caption_of({"properties": "black and white", "text": "with text"})
        == "a black and white photo with text"
    )
    assert caption_of({}) == "a photo"
