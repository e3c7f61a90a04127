"""Repair by further samples: which of a pool to add to the training samples, one way of choosing a file."""
