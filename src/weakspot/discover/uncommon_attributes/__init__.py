"""Uncommon attributes: which backgrounds, colours, sizes or poses that a class is rarely seen with do its failures show.

After *Identifying and Mitigating Model Failures through Few-shot CLIP-aided Diffusion Generation* (2024).
`docs/reference/methods.md` says where this departs from the paper and why.
"""

from weakspot.discover.uncommon_attributes.discoverer import UncommonAttributesDiscoverer

__all__ = ["UncommonAttributesDiscoverer"]
