"""Composing new images from a user's own ones: cut out, put elsewhere, changed by name."""

from weakspot.generation.compose.composing import ComposeGenerator

__all__ = ["ComposeGenerator"]
