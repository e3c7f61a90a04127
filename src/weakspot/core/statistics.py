"""Intervals, exact tests and false-discovery control."""
