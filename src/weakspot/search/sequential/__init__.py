"""Statistics of rates that are looked at while they are drawn: everything here holds at whatever time one stops."""

from weakspot.search.sequential.confidence import contrast_intervals, rate_interval
from weakspot.search.sequential.discoveries import discoveries, discovery_rates
from weakspot.search.sequential.evidence import least_difference, least_ratio, log_evidence
from weakspot.search.sequential.fixed import FixedDesign, fixed_design
from weakspot.search.sequential.stopping import is_futile, is_same

__all__ = [
    "FixedDesign",
    "contrast_intervals",
    "discoveries",
    "discovery_rates",
    "fixed_design",
    "is_futile",
    "is_same",
    "least_difference",
    "least_ratio",
    "log_evidence",
    "rate_interval",
]
