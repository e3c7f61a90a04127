"""Failures by attributes: all combinations of up to three values, and the few that explain most failures."""

from weakspot.discover.attributes.discoverer import AttributesDiscoverer

__all__ = ["AttributesDiscoverer"]
