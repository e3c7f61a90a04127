"""Starts work in processes, and keeps what became of it in the shared state."""


class JobRunner:
    """Work under way."""
