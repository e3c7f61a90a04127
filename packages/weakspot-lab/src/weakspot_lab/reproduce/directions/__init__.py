"""Distilling Model Failures as Directions in Latent Space, run again."""
