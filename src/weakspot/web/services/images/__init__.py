"""Images of samples that people may look at: which they are, how they are chosen and ordered."""
