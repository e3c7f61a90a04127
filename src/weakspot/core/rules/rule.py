"""What a membership rule is, and how the rule of a stored record is found again.

The list of kinds is open: a package registers its own under the entry-point group `weakspot.rules`, and its records say
`"kind": "package/name"`. Built-in kinds have plain names.
"""

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, TypeVar

import numpy as np
from pydantic import BeforeValidator, SerializeAsAny

from weakspot.core.arrays import BoolArray, DoubleArray, IntArray
from weakspot.core.errors import ConfigError, DataError
from weakspot.core.record import Record
from weakspot.core.registry import part_class
from weakspot.core.samples import SampleSet

# What the id of an encoder ends with; docs/results/first_minute.md measures each beside float32.
IN_INTEGERS, IN_HALVES = "+int8@", "+float16"
EARLIER_KINDS = {"outcome": "prediction"}
MOST_COMPLEX = 100


class Rule(Record):
    """Base of all rules: gives every sample a score, larger is deeper inside, and says who is a member.

    A rule of another package sets `kind` to the name it is registered under, `package/name`, and defines `scores`, `members` and
    `sentence`. One with a threshold on its score inherits from `ThresholdRule`, which has `members`.
    """

    earlier_values: ClassVar[Mapping[str, Mapping[str, str]]] = {
        "space": {"joint": "clip", "own": "features"},
        "kind": EARLIER_KINDS,
        "column": {"picture size": "image size"},
    }
    complexity: ClassVar[int] = MOST_COMPLEX
    """Of several slices with the same members, the one with the simplest rule is tested; smaller is simpler."""

    kind: str

    def scores(self, samples: SampleSet, rows: IntArray) -> DoubleArray:
        """Return how far inside the slice every row lies [len(rows)]; NaN where that cannot be said."""
        raise NotImplementedError

    def members(self, samples: SampleSet, rows: IntArray) -> BoolArray:
        """Return which rows belong to the slice [len(rows)]."""
        raise NotImplementedError

    def is_known(self, samples: SampleSet, rows: IntArray) -> BoolArray:
        """Return for which rows it can be said whether they are members."""
        return np.isfinite(self.scores(samples, rows))

    @property
    def sentence(self) -> str:
        """Who belongs to the slice, in a sentence for people."""
        return f"Samples that a rule of the kind {self.kind} takes."

    @property
    def parts(self) -> "tuple[Rule, ...]":
        """The rules that this one is made of; one that is made of no others is its own only part."""
        return (self,)

    @property
    def reads_predictions(self) -> bool:
        """Whether membership follows from what the classifier answered; such a slice cannot be proven."""
        return False

    @property
    def columns(self) -> frozenset[str]:
        """Metadata columns that are read."""
        return frozenset()


class ThresholdRule(Rule):
    """Members are the samples whose score is at least `threshold`."""

    threshold: float = 0.0

    def members(self, samples: SampleSet, rows: IntArray) -> BoolArray:
        return self.scores(samples, rows) >= self.threshold


AnyRule = TypeVar("AnyRule", bound=Rule)
BUILT_IN_RULES: dict[str, type[Rule]] = {}


def built_in(rule: type[AnyRule]) -> type[AnyRule]:
    """Make a rule of this package known by its kind."""
    BUILT_IN_RULES[str(rule.model_fields["kind"].default)] = rule
    return rule


def rule_class(kind: str) -> type[Rule]:
    """Return the class of a kind of rule.

    Raises:
        DataError: if the package that brings it is not installed, with its name.
    """
    known = BUILT_IN_RULES.get(EARLIER_KINDS.get(kind, kind))
    if known is not None:
        return known
    try:
        found: type[Rule] = part_class("rules", kind)
    except ConfigError as error:
        package, is_of_package, _ = kind.partition("/")
        raise DataError(
            f"A slice has a membership rule of the kind {kind!r}, which cannot be used here.",
            given=kind,
            fix=f"Install the package {package!r}, which brings it: {error.what}"
            if is_of_package
            else f"Use one of {sorted(BUILT_IN_RULES)} or of an installed package.",
        ) from error
    return found


def _read_rule(given: Any) -> Any:
    if isinstance(given, Rule) or not isinstance(given, Mapping):
        return given
    return rule_class(str(given.get("kind"))).model_validate(given)


MembershipRule = Annotated[SerializeAsAny[Rule], BeforeValidator(_read_rule)]
"""A rule of any kind, as a field of a record."""


def single_rules(rule: Rule) -> tuple[Rule, ...]:
    """Return the rules that a rule is made of, down to those that are made of no others."""
    return tuple(
        single
        for part in rule.parts
        for single in ((part,) if part is rule else single_rules(part))
    )


def refuse_other_encoder(samples: SampleSet, space: str, encoder_id: str) -> None:
    """Refuse embeddings that another encoder made than those of a rule; the same one in another precision gives the same for it."""
    given = samples.space(space).encoder_id
    if without_precision(given) != without_precision(encoder_id):
        raise DataError(
            "The slice was found with another encoder than the project's embeddings.",
            given=given,
            fix=f"Embed with {encoder_id!r}.",
        )


def without_precision(encoder_id: str) -> str:
    """Return the id of an encoder whatever the precision that it computes in.

    >>> without_precision("encoder@1+int8@2"), without_precision("encoder@1+float16")
    ('encoder@1', 'encoder@1')
    """
    return encoder_id.partition(IN_INTEGERS)[0].removesuffix(IN_HALVES)
