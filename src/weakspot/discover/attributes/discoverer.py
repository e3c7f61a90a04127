"""Failures by attributes: which values, alone or together, the failures of a class share.

After Chen, Li and Xu, *HiBug: On Human-Interpretable Model Debug* (2023). `docs/reference/methods.md` says where this departs from
the paper and why.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields, replace
from functools import cached_property
from typing import Annotated

import numpy as np
from pydantic import JsonValue

from weakspot.core.arrays import AnyArray, IntArray
from weakspot.core.assistants import NOBODY, Assistants
from weakspot.core.attributes import shown_as
from weakspot.core.blind import BlindCandidate
from weakspot.core.bounds import Bounds, Count, NonNegativeInt, PositiveFraction, check_bounds
from weakspot.core.class_embeddings import obstacle
from weakspot.core.failures import ClassProblem, FailureCriterion, Side, class_problems
from weakspot.core.needs import Need
from weakspot.core.roles import Discovery
from weakspot.core.rules import AllOfRule, ColumnRule
from weakspot.core.run import ClassNote
from weakspot.core.samples import SampleSet
from weakspot.core.seeding import generator
from weakspot.core.slices import DataUse, FailureSlice, SliceName
from weakspot.discover.attributes.columns import AttributeTable, attribute_table
from weakspot.discover.attributes.search import CombinationSearch, Finding, SearchResult
from weakspot.discover.attributes.standing_out import absent_codes
from weakspot.discover.attributes.wording import name_words, shared_values, table_words, worded

METHOD = "attributes"
ALL_CLASSES = "all classes"
LEAST_PER_SIDE = 2
LARGEST_ORDER = 3


@dataclass(frozen=True, kw_only=True)
class AttributesDiscoverer:
    """Finds the combinations of attribute values in which the failures of a class gather; the values are the slice's name.

    After Chen, Li and Xu, *HiBug: On Human-Interpretable Model Debug* (2023).

    Args:
        columns: metadata columns that are attributes; none for those that were assigned or, where none was, all with few values.
        max_order: values in a combination, at most 3.
        min_support: least number of samples in a combination.
        max_values: columns with more values are left out.
        min_gap: least difference of failure rates between a slice and the rest of its class.
        cover: share of a class's failures after which no further slice is looked for; 1 for all that stand out.
        max_slices: slices of a class, at most.
        max_p: largest p-value of a slice against the rest of its class, not corrected.
        max_chance: largest chance of a slice, corrected for all combinations; 1 for no limit.
        refine_p: a value is added only if failures get more frequent beyond this p-value, corrected for the values that could have
            been added instead.
        n_permutations: shuffles by which chances are found; 0 for the p-value times the number of combinations.

    >>> from weakspot.testing.examples import CRITERION, discovery_samples
    >>> found = AttributesDiscoverer(n_permutations=19).discover(discovery_samples(), CRITERION, seed=0)
    >>> found.slices[0].title, found.slices[0].n_found
    ('disc: green', 16)
    """

    columns: tuple[str, ...] = ()
    max_order: Annotated[int, Bounds(ge=1, le=LARGEST_ORDER)] = 3
    min_support: Count = 10
    max_values: Annotated[int, Bounds(ge=2)] = 50
    min_gap: Annotated[float, Bounds(ge=0, lt=1)] = 0.05
    cover: PositiveFraction = 1.0
    max_slices: Count = 200
    max_p: PositiveFraction = 0.05
    max_chance: PositiveFraction = 1.0
    refine_p: PositiveFraction = 0.05
    n_permutations: NonNegativeInt = 199

    def __post_init__(self) -> None:
        check_bounds(self)

    @property
    def is_baseline(self) -> bool:
        return False

    @property
    def needs(self) -> tuple[Need, ...]:
        return (Need.COLUMNS,)

    @property
    def is_always_blind(self) -> bool:
        return False

    def blind_candidates(
        self, samples: SampleSet, problem: ClassProblem, *, seed: int
    ) -> tuple[BlindCandidate, ...]:
        """Return every single value that enough samples of the class have, and enough have not; rare ones count more.

        A slice is rarely a third of its class, and a frequent value has more power anyway.
        """
        table = attribute_table(
            samples.dataset, problem.rows, tuple(self.columns), max_values=self.max_values
        )
        own = replace(samples, rows=problem.rows)
        slicing = _Slicing(own, table, self._parameters(seed), DataUse.nothing())
        most = len(problem.rows) - self.min_support
        counted = [
            ((attribute, code), int(np.count_nonzero(table.codes[:, attribute] == code)))
            for attribute, words in enumerate(table.values)
            for code in range(1, len(words) + 1)
        ]
        return tuple(
            BlindCandidate(found=slicing.value_of(problem, pair, n_inside), weight=n_inside**-0.5)
            for pair, n_inside in counted
            if self.min_support <= n_inside <= most
        )

    def discover(
        self,
        samples: SampleSet,
        criterion: FailureCriterion,
        *,
        seed: int,
        assistants: Assistants = NOBODY,
    ) -> Discovery:
        """Return the slices of every class and a note for every class without any.

        Those that account for failures which no other one explains come first, those least likely by chance first among them.
        """
        del assistants
        table = attribute_table(
            samples.dataset, samples.rows, tuple(self.columns), max_values=self.max_values
        )
        notes = [ClassNote(class_name=ALL_CLASSES, note=note) for note in table.notes]
        ranked: list[tuple[bool, float, float, FailureSlice]] = []
        n_considered = 0
        slicing = _Slicing(samples, table, self._parameters(seed), DataUse.of(samples))
        for problem in class_problems(samples.dataset, samples.rows, criterion):
            found = self._search(problem, slicing, seed)
            if isinstance(found, str):
                notes.append(ClassNote(class_name=problem.title, note=found))
                continue
            n_considered += found.n_considered
            kept = [finding for finding in found.findings if finding.chance <= self.max_chance]
            ranked += [
                (
                    not finding.is_picked,
                    finding.chance,
                    -finding.evidence,
                    slicing.slice_of(problem, finding),
                )
                for finding in kept
            ]
            notes += [
                ClassNote(class_name=problem.title, note=note)
                for note in self._remarks(problem, found, len(kept))
            ]
        ranked.sort(key=lambda entry: entry[:3])
        return Discovery(
            slices=tuple(entry[3] for entry in ranked),
            notes=tuple(notes),
            n_considered=n_considered,
        )

    def _search(self, problem: ClassProblem, slicing: "_Slicing", seed: int) -> SearchResult | str:
        note = obstacle(problem, min_failures=LEAST_PER_SIDE, min_right=LEAST_PER_SIDE)
        if note:
            return note
        if not slicing.table.names:
            return "There is nothing to compare: no metadata column can be used as an attribute. Assign attributes, or add columns."
        # Shuffles are dealt out to samples by place, so places must not depend on the order of the table.
        order = np.argsort(
            np.array(slicing.samples.dataset.sample_ids(problem.rows)), kind="stable"
        )
        names = {field.name for field in fields(CombinationSearch)}
        search = CombinationSearch(**{name: getattr(self, name) for name in names})
        return search.run(
            slicing.codes(problem.rows[order]),
            problem.failed[order],
            generator(seed, METHOD, problem.title),
            None if problem.groups is None else problem.groups[order],
            is_absent=slicing.is_absent,
        )

    def _remarks(self, problem: ClassProblem, found: SearchResult, n_kept: int) -> list[str]:
        remarks = []
        if found.order < self.max_order:
            remarks.append(
                f"There are too many combinations; only those of at most {found.order} values were counted."
            )
        if not n_kept:
            remarks.append(
                f"Among {found.n_considered} combinations of attribute values that at least {self.min_support} samples have, none "
                f"stands out with failures ({problem.n_failed} of {len(problem.rows)} samples failed)."
            )
        return remarks

    def _parameters(self, seed: int) -> dict[str, JsonValue]:
        return {**asdict(self), "columns": list(self.columns), "seed": seed}


class _Slicing:
    """Turns findings into slices."""

    def __init__(
        self,
        samples: SampleSet,
        table: AttributeTable,
        parameters: dict[str, JsonValue],
        found_on: DataUse,
    ) -> None:
        self.samples, self.table = samples, table
        self._parameters = parameters
        self._found_on = found_on
        columns = zip(table.names, table.values, strict=True)
        self._shared = shared_values(
            [
                [shown_as(samples.dataset.table, name, one)[1] for one in words]
                for name, words in columns
            ]
        )

    @cached_property
    def is_absent(self) -> AnyArray:
        """Return which codes say that something is not there [a, c]."""
        widest = max((len(words) for words in self.table.values), default=0) + 1
        found = np.zeros((len(self.table.names), widest), dtype=np.bool_)
        for place, words in enumerate(self.table.values):
            found[place, : len(words) + 1] = absent_codes(words, self.table.codes[:, place])
        return found

    def codes(self, rows: IntArray) -> AnyArray:
        """Return the codes [n, a] of some rows of the sample set."""
        places = np.argsort(self.samples.rows, kind="stable")
        return self.table.codes[places[np.searchsorted(self.samples.rows, rows, sorter=places)]]

    def slice_of(self, problem: ClassProblem, finding: Finding) -> FailureSlice:
        found = self._named(problem, finding.values, finding.gap)
        update = {
            "strength": finding.gap,
            "strength_p": finding.chance,
            "n_found": finding.n_inside,
        }
        return found.model_copy(update=update)

    def value_of(self, problem: ClassProblem, pair: tuple[int, int], n_inside: int) -> FailureSlice:
        """Return the slice of one value (attribute, code), of which nobody knows whether it fails."""
        return self._named(problem, (pair,), 0.0).model_copy(update={"n_found": n_inside})

    def _named(
        self, problem: ClassProblem, values: Sequence[tuple[int, int]], score: float
    ) -> FailureSlice:
        pairs = [
            (self.table.names[attribute], self.table.values[attribute][code - 1])
            for attribute, code in values
        ]
        rules = tuple(ColumnRule(column=column, values=(value,)) for column, value in pairs)
        table = self.samples.dataset.table
        wordings = [
            worded(*shown_as(table, column, value), shared=self._shared) for column, value in pairs
        ]
        phrase, contrast = name_words(
            problem.class_name, wordings, is_absent=problem.side is Side.ABSENT
        )
        if not self.samples.dataset.has_images:
            phrase = table_words(problem.title, pairs)
        return FailureSlice(
            class_name=problem.class_name,
            side=problem.side,
            rule=rules[0] if len(rules) == 1 else AllOfRule(rules=rules),
            method=METHOD,
            parameters=self._parameters,
            found_on=self._found_on,
            names=(SliceName(phrase=phrase, contrast=contrast, score=score, describer=METHOD),),
        )
