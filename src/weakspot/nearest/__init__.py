"""Side: which embeddings lie nearest to one, exactly and without loading them all."""
