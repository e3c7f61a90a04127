"""Keywords that captions of failures say and captions of other samples do not, put to the embeddings as a second witness.

After Kim, Mo, Kim, Lee, Lee and Shin, *Discovering and Mitigating Visual Biases through Keyword Explanation* (Bias-to-Text, 2024),
and the suggestions of Lee and others, *Clarify* (2024). `docs/reference/methods.md` says where this departs from them and why.
"""

from weakspot.discover.keywords.discoverer import KeywordsDiscoverer
from weakspot.discover.keywords.scoring import Suggestion

__all__ = ["KeywordsDiscoverer", "Suggestion"]
