"""Before and after, on samples that nothing was trained or chosen on: every arm is measured here, in the same way."""

from weakspot.repair.measure.arm import ArmAnswers, Elsewhere, measure_arm
from weakspot.repair.measure.freshness import untouched

__all__ = ["ArmAnswers", "Elsewhere", "measure_arm", "untouched"]
