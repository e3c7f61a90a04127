"""Intervals and exact tests of many tables of counts at once."""

from weakspot.core.count_statistics.tables import fisher_ps, mcnemar_ps, wilson_intervals

__all__ = ["fisher_ps", "mcnemar_ps", "wilson_intervals"]
