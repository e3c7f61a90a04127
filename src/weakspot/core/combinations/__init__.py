"""Counts of samples and failures for all combinations of attribute values."""

from weakspot.core.combinations.counting import (
    CombinationCounter,
    Combinations,
    affordable_order,
    bound_on_combinations,
    count_combinations,
)
from weakspot.core.combinations.nulls import ShuffledFailures, evidence_of, penalties_of, scores_of

__all__ = [
    "CombinationCounter",
    "Combinations",
    "ShuffledFailures",
    "affordable_order",
    "bound_on_combinations",
    "count_combinations",
    "evidence_of",
    "penalties_of",
    "scores_of",
]
