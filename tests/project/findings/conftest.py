"""A classifier that fails on green apples, as a data scientist has it in memory."""

from types import SimpleNamespace

import numpy as np
import pytest

N = 600


@pytest.fixture(scope="session")
def fruit():
    """Codes of labels, predictions, columns and embeddings; 65 % of the green apples are taken for pears, 7 % of the rest is wrong."""
    draws = np.random.default_rng(8)
    labels = draws.integers(0, 2, N)
    colour = draws.choice(["red", "green", "blue"], N, p=[0.6, 0.2, 0.2])
    is_hard = (labels == 0) & (colour == "green")
    has_failed = draws.random(N) < np.where(is_hard, 0.65, 0.07)
    embeddings = draws.normal(0, 0.3, (N, 6)).astype(np.float32)
    embeddings[:, 0] += np.where(colour == "green", 2.0, 0.0)
    embeddings[:, 1] += np.where(labels == 1, 2.0, 0.0)
    return SimpleNamespace(
        labels=labels,
        predictions=np.where(has_failed, 1 - labels, labels),
        names=["apple", "pear"],
        columns={"colour": colour, "weight": draws.normal(100, 9, N)},
        embeddings=embeddings,
        is_hard=is_hard,
        has_failed=has_failed,
    )
