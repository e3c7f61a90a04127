"""Refining a classifier with generated pictures of what its failures show, whole: names, prompts, pictures, training, measuring.

After *Identifying and Mitigating Model Failures through Few-shot CLIP-aided Diffusion Generation* (2024).
"""
