"""Failures by clusters that are made without predictions."""

from weakspot.discover.clusters.discoverer import ClustersDiscoverer

__all__ = ["ClustersDiscoverer"]
