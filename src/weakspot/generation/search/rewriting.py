"""Shorter wordings of a caption, proposed by a language model."""

import json
from dataclasses import dataclass

from pydantic import JsonValue

from weakspot.core.errors import ModelError
from weakspot.core.roles import TextGenerator
from weakspot.lexicon.captions import noun_of

N_WORDINGS = 4
ASKED = (
    'A photograph of {class} is described so: "{caption}" Say the same in fewer words, in {n} different ways, each as one short plain '
    "sentence that begins with “it is”, “there is” or “the background is”. Add nothing, and do not name {class}."
)
SCHEMA: dict[str, JsonValue] = {
    "type": "object",
    "properties": {"captions": {"type": "array", "items": {"type": "string"}}},
    "required": ["captions"],
}


@dataclass(frozen=True, kw_only=True, eq=False)
class CaptionRewriter:
    """Asks for shorter wordings; an answer that is of no use gives none.

    Args:
        language: prompts to text.
        class_name: what the captions are of.
        seed: of the search.
    """

    language: TextGenerator
    class_name: str
    seed: int = 0

    def __call__(self, caption: str) -> tuple[str, ...]:
        """Return wordings, best first; each is measured like any other caption before it counts."""
        asked = ASKED.replace("{class}", noun_of(self.class_name)).replace("{n}", str(N_WORDINGS))
        try:
            said = self.language.generate(
                asked.replace("{caption}", caption), schema=SCHEMA, seed=self.seed
            )
            found = json.loads(said)["captions"]
        except (ModelError, ValueError, KeyError, TypeError):
            return ()
        texts = found if isinstance(found, list) else []
        return tuple(text for text in texts if isinstance(text, str) and text.strip())[:N_WORDINGS]
