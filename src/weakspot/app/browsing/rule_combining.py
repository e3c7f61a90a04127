"""Two rules made one: samples that satisfy either, or both. The result is any-of all-of single rules, however often it is done."""

from itertools import product

from weakspot.core.errors import DataError
from weakspot.core.rules import AllOfRule, AnyOfRule, MembershipRule, PartRule, SingleRule

MOST_PARTS = 64


def any_of(first: MembershipRule, second: MembershipRule) -> MembershipRule:
    """Return the rule whose members satisfy either of two."""
    return _either([*_choices(first), *_choices(second)])


def all_of(first: MembershipRule, second: MembershipRule) -> MembershipRule:
    """Return the rule whose members satisfy both of two."""
    return _either([_both(one, other) for one, other in product(_choices(first), _choices(second))])


def _choices(rule: MembershipRule) -> tuple[PartRule, ...]:
    return rule.rules if isinstance(rule, AnyOfRule) else (rule,)


def _conditions(rule: PartRule) -> tuple[SingleRule, ...]:
    return rule.rules if isinstance(rule, AllOfRule) else (rule,)


def _both(first: PartRule, second: PartRule) -> PartRule:
    conditions: list[SingleRule] = []
    for condition in (*_conditions(first), *_conditions(second)):
        if condition not in conditions:
            conditions.append(condition)
    return conditions[0] if len(conditions) == 1 else AllOfRule(rules=tuple(conditions))


def _either(parts: list[PartRule]) -> MembershipRule:
    different: list[PartRule] = []
    for part in parts:
        if part not in different:
            different.append(part)
    if len(different) > MOST_PARTS:
        raise DataError("The merged rule would have too many parts.", given=len(different), fix="Merge simpler slices.")
    return different[0] if len(different) == 1 else AnyOfRule(rules=tuple(different))
