"""Side: where heavy maps run."""
