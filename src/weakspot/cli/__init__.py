"""Top: the terminal."""
