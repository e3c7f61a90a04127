"""What witnesses say of every image: captions where there is no captioner, and values of attributes."""

from collections.abc import Mapping

from weakspot.core.arrays import IntArray
from weakspot.core.errors import ModelError
from weakspot.lexicon.captions import with_article
from weakspot.pipeline.models.witnesses.seeing import Seeing

OBJECT, LOOK = "objects", "properties"


def tag_captions(seeing: Seeing, rows: IntArray) -> list[str]:
    """Return one caption a row, made of what each witness is sure of; empty where none could look.

    Raises:
        ModelError: if no witness can be asked.
    """
    phrases: list[dict[str, str]] = [{} for _ in rows]
    for witness in seeing.witnesses:
        for place, said in enumerate(seeing.try_said(witness, rows)):
            if said:
                phrases[place][witness.kind] = witness.phrase(said)
    if seeing.witnesses and all(one.kind in seeing.problems for one in seeing.witnesses):
        raise ModelError(" ".join(seeing.notes()))
    return [caption_of(one) if one else "" for one in phrases]


def caption_of(phrases: Mapping[str, str]) -> str:
    """Return a caption from what witnesses say, by kind.

    >>> caption_of({"text": "with text", "objects": "lemon", "scenes": "in a supermarket", "properties": "dark"})
    'a dark photo of a lemon with text, in a supermarket'
    >>> caption_of({"text": "", "objects": "", "masks": "green object"})
    'a photo, green object'
    """
    look, thing = phrases.get(LOOK, ""), phrases.get(OBJECT, "")
    caption = with_article(f"{look} photo".strip()) + (
        f" of {with_article(thing)}" if thing else ""
    )
    for kind, phrase in phrases.items():
        if phrase and kind not in {LOOK, OBJECT}:
            caption += f" {phrase}" if phrase.startswith("with ") else f", {phrase}"
    return caption


def tag_values(seeing: Seeing, rows: IntArray) -> dict[str, list[str]]:
    """Return the values of all attributes that witnesses give, by name, one a row; empty where they are not sure."""
    found: dict[str, list[str]] = {}
    for witness in seeing.witnesses:
        tags = [witness.tags(said) if said else {} for said in seeing.try_said(witness, rows)]
        names = dict.fromkeys(name for one in tags for name in one)
        found |= {name: [one.get(name, "") for one in tags] for name in names}
    return found
