"""Tables whose truth is nested: what is confirmed of it, and what other tools list first."""
