"""Adversarial sets: pictures drawn from captions of hard pictures, of which the misclassified ones are kept and measured."""
