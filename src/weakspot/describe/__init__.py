"""Stage 4: slices to names, one method per file."""
