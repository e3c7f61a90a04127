"""Refine: failures named by uncommon values, images of these values, and a retrained last layer, for up to 40 models."""
