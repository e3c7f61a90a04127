"""Words of captions that failures say more often than other samples: tested as they are, and as a plain table of frequencies."""

from weakspot.discover.words.discoverer import WordsDiscoverer
from weakspot.discover.words.frequencies import (
    WordFrequenciesDiscoverer,
    WordFrequency,
    word_frequencies,
)

__all__ = ["WordFrequenciesDiscoverer", "WordFrequency", "WordsDiscoverer", "word_frequencies"]
