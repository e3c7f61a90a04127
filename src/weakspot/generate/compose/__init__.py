"""Composing new pictures from a user's own ones: cut out, put elsewhere, changed by name."""

from weakspot.generate.compose.composing import ComposeGenerator

__all__ = ["ComposeGenerator"]
