"""Migrations of the shared state, one file a step."""
