"""Repair where nothing can be retrained here: rows to collect, how many, and weights for the user's own training."""
