"""Stage 6: confirmed slices to a better last layer, one strategy per file."""
