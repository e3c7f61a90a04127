"""Scores dealt out anew among groups, and what memberships then sum up to."""

from weakspot.core.dealt_scores.dealing import DealtScores

__all__ = ["DealtScores"]
