"""Membership rules: which samples, seen or unseen, belong to a slice.

Every rule gives a score, larger is deeper inside, and members by a threshold on it.
"""

from weakspot.core.rules.combined import AllOfRule, AnyOfRule
from weakspot.core.rules.kinds import (
    BallRule,
    ColumnRule,
    IdRule,
    LinearRule,
    MixtureRule,
    NearestRule,
    PredictionRule,
)
from weakspot.core.rules.rule import (
    BUILT_IN_RULES,
    MembershipRule,
    Rule,
    ThresholdRule,
    refuse_other_encoder,
    rule_class,
    single_rules,
)

__all__ = [
    "BUILT_IN_RULES",
    "AllOfRule",
    "AnyOfRule",
    "BallRule",
    "ColumnRule",
    "IdRule",
    "LinearRule",
    "MembershipRule",
    "MixtureRule",
    "NearestRule",
    "PredictionRule",
    "Rule",
    "ThresholdRule",
    "refuse_other_encoder",
    "rule_class",
    "single_rules",
]
