"""Stage 5: slices to evidence on data that discovery never saw."""
