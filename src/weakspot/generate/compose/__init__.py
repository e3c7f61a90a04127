"""Composing new images from a user's own ones: cut out, put elsewhere, changed by name."""
