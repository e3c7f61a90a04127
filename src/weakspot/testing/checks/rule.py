"""Checks of membership rules. The factory builds a rule; one that reads embeddings must read the planted ones."""

import numpy as np
from pydantic import TypeAdapter

from weakspot.core.dataset import Split
from weakspot.core.rules import BUILT_IN_RULES, MembershipRule, Rule
from weakspot.core.slices import DataUse, FailureSlice
from weakspot.testing.checks import material
from weakspot.testing.checks.expectation import Check, Factory, expect


def is_a_rule_of_its_kind(factory: Factory) -> None:
    """It is a frozen record whose kind is the name it is registered under."""
    rule = factory()
    expect(
        isinstance(rule, Rule),
        f"{type(rule).__name__} does not inherit from weakspot.core.rules.Rule.",
    )
    is_named = rule.kind in BUILT_IN_RULES or rule.kind.count("/") == 1
    expect(is_named, f"The kind {rule.kind!r} is not `package/name`.")


def scores_and_members_fit_the_rows(factory: Factory) -> None:
    """One number and one yes or no for every row, whatever rows are asked about; members score higher than others."""
    samples = material.sample_set(Split.VALIDATION, is_read_only=True)
    rule: Rule = factory()
    for rows in (samples.rows, samples.rows[::-1], samples.rows[:0]):
        scores, members = rule.scores(samples, rows), rule.members(samples, rows)
        expect(
            scores.shape == members.shape == rows.shape, "Not one score and answer for every row."
        )
        expect(members.dtype == np.bool_, "Members are not told by booleans.")
        inside, outside = scores[members], scores[~members]
        expect(
            not len(inside)
            or not len(outside)
            or inside.min() >= np.nanmax(outside, initial=-np.inf),
            "A sample outside scores higher than one inside.",
        )
    backwards = rule.members(samples, samples.rows[::-1])[::-1]
    expect(
        np.array_equal(backwards, rule.members(samples, samples.rows)), "The order of rows matters."
    )


def says_who_belongs(factory: Factory) -> None:
    """It has a sentence of its own for people."""
    rule: Rule = factory()
    expect(
        rule.sentence.strip().endswith("."),
        "The sentence of the rule does not end with a full stop.",
    )
    expect(rule.sentence != Rule(kind=rule.kind).sentence, "The rule has no sentence of its own.")


def survives_a_record(factory: Factory) -> None:
    """Stored and read again, it is the same rule, and its slice has the same id."""
    rule: Rule = factory()
    adapter: TypeAdapter[Rule] = TypeAdapter(MembershipRule)
    again = adapter.validate_json(adapter.dump_json(rule))
    expect(type(again) is type(rule) and again == rule, "The rule is another one after JSON.")
    use = DataUse(name="validation", n_samples=1, digest="0")
    slice_ = FailureSlice(class_name="disc", rule=rule, method="check", found_on=use)
    read = FailureSlice.model_validate_json(slice_.model_dump_json())
    expect(read == slice_ and read.slice_id == slice_.slice_id, "A slice changes in JSON.")


CHECKS: dict[str, Check] = {
    check.__name__: check
    for check in (
        is_a_rule_of_its_kind,
        scores_and_members_fit_the_rows,
        says_who_belongs,
        survives_a_record,
    )
}
