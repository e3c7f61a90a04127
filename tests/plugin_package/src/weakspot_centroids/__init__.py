"""A weakspot plug-in with one discoverer and one embedder."""
