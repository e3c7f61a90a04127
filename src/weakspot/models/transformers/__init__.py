"""Models of transformers by name or folder, and what is asked of them."""
