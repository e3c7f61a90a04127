"""One run seed in, one named generator per step out."""

import hashlib

import numpy as np


def child_seed(seed: int, *names: str) -> int:
    """Derive the seed of a named step from the seed of the run, the same on every machine.

    >>> child_seed(0, "discover", "apple") == child_seed(0, "discover", "apple")
    True
    >>> child_seed(0, "discover") == child_seed(0, "verify")
    False
    """
    digest = hashlib.sha256("/".join([str(seed), *names]).encode()).digest()
    return int.from_bytes(digest[:4], "big")


def generator(seed: int, *names: str) -> np.random.Generator:
    return np.random.default_rng(child_seed(seed, *names))
