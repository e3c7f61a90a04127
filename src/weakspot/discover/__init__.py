"""Stage 3: vectors and failures to failure slices, one method per file."""
