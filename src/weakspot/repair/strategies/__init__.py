"""Repair strategies; each chooses a weighted training set."""
