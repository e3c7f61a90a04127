"""Words: the built-in vocabulary, captions with the right articles, WordNet."""
