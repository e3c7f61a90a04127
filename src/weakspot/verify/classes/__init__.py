"""Whole classes tested: which fails, what it is taken for, whether it looks unlike training, whether it gets worse with time."""
