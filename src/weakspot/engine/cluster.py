"""Heavy maps on a Ray cluster."""
