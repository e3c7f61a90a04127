"""Attributes: their values, edits, and combinations that fail."""
