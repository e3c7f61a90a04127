"""Failures as soft regions of high loss."""

from weakspot.discover.spotlight.discoverer import SpotlightDiscoverer

__all__ = ["SpotlightDiscoverer"]
