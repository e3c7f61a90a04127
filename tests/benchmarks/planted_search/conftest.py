"""The planted world and the sampler that the tests of the search use."""

from tests.generation.search.conftest import green_discs, sampler_of

__all__ = ["green_discs", "sampler_of"]
