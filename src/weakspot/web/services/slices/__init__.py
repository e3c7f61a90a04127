"""Slices: the table, one slice, its samples, and what people change."""
