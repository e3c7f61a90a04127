"""Small inputs for the examples in class docstrings, and for trying a method out: a planted world in which green discs fail.

>>> samples = discovery_samples()
>>> samples.dataset.class_names, len(samples)
(('disc', 'square', 'triangle', 'star'), 192)
"""

from dataclasses import replace

import numpy as np

from weakspot.core.dataset import Split
from weakspot.core.heads import RepairMaterial
from weakspot.core.samples import SampleSet
from weakspot.core.slices import FailureSlice
from weakspot.testing import material

CRITERION = material.CRITERION
ASSISTANTS = material.ASSISTANTS
"""Somebody to ask: embeds phrases in the planted space."""


def discovery_samples() -> SampleSet:
    """Return samples in which a discoverer finds that green discs fail."""
    return material.sample_set(Split.VALIDATION)


def captioned_samples() -> SampleSet:
    """Return the same samples with a caption each, as a column of a table."""
    samples = discovery_samples()
    captions = material.small_world().captions(np.arange(len(samples.dataset)))
    dataset = samples.dataset.with_metadata({"caption": captions})
    return replace(samples, dataset=dataset)


def confirmation_samples() -> SampleSet:
    return material.sample_set(Split.TEST)


def example_slices() -> tuple[FailureSlice, ...]:
    """Return a slice of green discs, and one that is harmless."""
    return material.slices_of(discovery_samples())


def repair_example() -> tuple[tuple[FailureSlice, ...], RepairMaterial]:
    """Return slices, and training samples, a pool and generated samples to repair them with."""
    return material.repair_slices(material.everything()), material.full()
