"""Adversarial sets: images generated from captions of hard images, of which the misclassified ones are kept and measured."""
