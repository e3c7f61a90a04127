"""By what slices are ordered; light, because the terminal offers it before anything is loaded."""

from enum import StrEnum


class SliceOrder(StrEnum):
    """By what slices are ordered for a reader."""

    SEVERITY = "severity"
    COVERAGE = "coverage"
    BOTH = "both"
