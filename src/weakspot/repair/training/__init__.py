"""Training of a last linear layer on frozen features."""
