"""Words: the built-in vocabulary and WordNet, captions, attributes of samples, and the names of slices."""
