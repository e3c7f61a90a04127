"""Stage 2: samples and phrases to embeddings."""
