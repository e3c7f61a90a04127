"""Repair: what can be repaired, what it did, and its files."""
