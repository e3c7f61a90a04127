"""Statistics of rates that are looked at while they are generated: everything here holds at whatever time one stops."""

from weakspot.generation.search.sequential.evidence import (
    contrast_intervals,
    least_difference,
    least_ratio,
    log_evidence,
    rate_interval,
)
from weakspot.generation.search.sequential.stopping import (
    FixedDesign,
    discoveries,
    discovery_rates,
    fixed_design,
    is_futile,
    is_same,
)

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
