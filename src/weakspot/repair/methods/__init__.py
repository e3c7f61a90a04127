"""Repair strategies, one per file; each chooses a weighted training set."""
