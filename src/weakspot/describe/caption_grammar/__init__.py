"""Names by a caption grammar: "a photo of a {adjective} {noun} {place}", scored against the slice."""

from weakspot.describe.caption_grammar.describer import CaptionGrammarDescriber
from weakspot.lexicon.vocabulary import ClassWords

__all__ = ["CaptionGrammarDescriber", "ClassWords"]
