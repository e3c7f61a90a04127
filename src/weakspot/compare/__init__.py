"""Several classifiers on the same samples: which failures they share, and where they differ."""
