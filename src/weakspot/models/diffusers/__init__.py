"""Pipelines of diffusers: drawing, editing, and drawing from embeddings."""
