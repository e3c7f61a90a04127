"""Failures as components of a mixture over vectors, labels and predictions."""

from weakspot.discover.mixture.discoverer import MixtureDiscoverer

__all__ = ["MixtureDiscoverer"]
