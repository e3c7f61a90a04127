"""Attributes for all samples of a project: proposed, assigned once, edited by people."""
