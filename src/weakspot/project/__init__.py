"""A project: the one object through which everything is done, and what sets it up."""
