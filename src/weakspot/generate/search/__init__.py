"""Open-ended search for captions that make a classifier fail."""
