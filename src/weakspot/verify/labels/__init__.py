"""Whether the failures of a slice look like wrong labels rather than wrong predictions."""

from weakspot.verify.labels.checker import LabelChecker

__all__ = ["LabelChecker"]
