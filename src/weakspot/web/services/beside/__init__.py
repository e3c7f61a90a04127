"""Two things beside each other: slices of a run, and classifiers of two projects."""
