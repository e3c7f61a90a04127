"""Failures as components of a mixture over embeddings, labels and predictions."""

from weakspot.discover.mixture.discoverer import MixtureDiscoverer

__all__ = ["MixtureDiscoverer"]
