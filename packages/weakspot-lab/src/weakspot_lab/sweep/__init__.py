"""A synthetic repair at several settings, as one table."""
