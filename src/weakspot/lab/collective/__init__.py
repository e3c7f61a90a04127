"""One repair set for a family of classifiers."""
