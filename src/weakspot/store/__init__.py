"""Side: the project folder on disk."""
