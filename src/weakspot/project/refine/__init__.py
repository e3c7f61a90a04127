"""Refining a classifier with generated images of what its failures show: prompts, images, training, measuring.

After *Identifying and Mitigating Model Failures through Few-shot CLIP-aided Diffusion Generation* (2024).
"""
