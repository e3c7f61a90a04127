"""A weakspot plug-in with one discoverer, its membership rule, and one embedder."""
