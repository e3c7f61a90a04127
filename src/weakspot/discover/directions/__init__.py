"""Failures as directions in a space of vectors."""

from weakspot.discover.directions.discoverer import DirectionsDiscoverer

__all__ = ["DirectionsDiscoverer"]
