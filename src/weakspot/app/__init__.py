"""Composition root: settings, wiring, and the stages in order."""
