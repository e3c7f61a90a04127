"""Stage 3: embeddings and failures to failure slices, one method per file."""
