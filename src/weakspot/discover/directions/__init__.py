"""Failures as directions in a space of embeddings."""

from weakspot.discover.directions.discoverer import DirectionsDiscoverer

__all__ = ["DirectionsDiscoverer"]
