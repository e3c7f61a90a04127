"""Failures by attributes: which values, alone or together, the failures of a class share.

All combinations of up to three values are counted; `attribute_search` picks the few that explain most failures.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property
from typing import Annotated

import numpy as np
import pyarrow as pa

from weakspot.core.arrays import AnyArray, BoolArray, DoubleArray, IntArray
from weakspot.core.assistants import NO_ASSISTANTS, Assistants
from weakspot.core.bounds import Bounds, Count, NonNegativeInt, PositiveFraction
from weakspot.core.dataset import Dataset
from weakspot.core.discoverers import ClassDiscoverer, ClassSamples
from weakspot.core.failures import ClassProblem, FailureCriterion, Side
from weakspot.core.roles import Discovery
from weakspot.core.rules import AllOfRule, ColumnRule
from weakspot.core.run import ClassNote
from weakspot.core.samples import Need, SampleSet, marked_attributes, obstacle, shown_as
from weakspot.core.slices import DataUse, FailureSlice, SliceName
from weakspot.discover.accounting import cells_of, excess_p
from weakspot.discover.attribute_search import (
    CountedClass,
    Finding,
    Pool,
    absent_codes,
    find_standing_out,
    keep_standing_out_in_groups,
)
from weakspot.discover.combinations import affordable_order
from weakspot.discover.family_tests import BlindCandidate
from weakspot.words.captions import built_in_attributes, built_in_vocabulary, plain_caption

MAX_NUMBERS = 12
MIN_VALUES = 2


@dataclass(frozen=True, kw_only=True, eq=False)
class AttributeTable:
    """Attributes of some rows.

    Args:
        names: the metadata columns.
        values: for every column its values, in alphabetical order.
        codes: [n, a] the place of the value among them plus one, 0 where the column says nothing.
        shared: what people call values that several columns have: these do not speak for themselves.
        notes: why columns were left out.
    """

    names: tuple[str, ...]
    values: tuple[tuple[str, ...], ...]
    codes: AnyArray
    shared: frozenset[str]
    notes: tuple[str, ...] = ()

    @cached_property
    def is_absent(self) -> AnyArray:
        """Return which codes say that something is not there [a, c]."""
        widest = max((len(words) for words in self.values), default=0) + 1
        found = np.zeros((len(self.names), widest), dtype=np.bool_)
        for place, words in enumerate(self.values):
            found[place, : len(words) + 1] = absent_codes(words, self.codes[:, place])
        return found


def attribute_table(
    dataset: Dataset, rows: IntArray, wanted: tuple[str, ...], *, max_values: int
) -> AttributeTable:
    """Return the attributes of the given rows.

    Args:
        dataset: with metadata columns.
        rows: what the values of a column are counted on.
        wanted: names of columns; none for those marked as attributes or, where none is marked, all that can be used.
        max_values: columns with more values are left out.
    """
    marked = marked_attributes(dataset.table)
    names = wanted or tuple(
        name for name in dataset.metadata_names if marked is None or name in marked
    )
    kept: list[tuple[str, tuple[str, ...], AnyArray]] = []
    notes: list[str] = []
    for name in names:
        values, codes = _encode(dataset.metadata(name), rows)
        obstacle = _obstacle(dataset.metadata(name).type, len(values), max_values)
        if obstacle:
            notes.append(f"The column {name!r} was left out: {obstacle}.")
        else:
            kept.append((name, values, codes))
    codes = (
        np.stack([codes for _, _, codes in kept], axis=1)
        if kept
        else np.zeros((len(rows), 0), dtype=np.uint16)
    )
    return AttributeTable(
        names=tuple(name for name, _, _ in kept),
        values=tuple(values for _, values, _ in kept),
        codes=codes,
        shared=shared_values(
            [shown_as(dataset.table, name, value)[1] for value in values]
            for name, values, _ in kept
        ),
        notes=tuple(notes),
    )


def _obstacle(kind: pa.DataType, n_values: int, max_values: int) -> str:
    most = min(max_values, MAX_NUMBERS) if _is_number(kind) else max_values
    if not _has_single_values(kind):
        return "its entries are no single values"
    if n_values < MIN_VALUES:
        return "all samples have the same value" if n_values else "it says nothing of these samples"
    if n_values > most:
        return f"it has {n_values} different {'numbers' if _is_number(kind) else 'values'}, at most {most} are compared"
    return ""


def _has_single_values(kind: pa.DataType) -> bool:
    is_binary = (
        pa.types.is_binary(kind)
        or pa.types.is_large_binary(kind)
        or pa.types.is_fixed_size_binary(kind)
    )
    return not (pa.types.is_nested(kind) or is_binary)


def _is_number(kind: pa.DataType) -> bool:
    return bool(
        pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind)
    )


def _encode(column: pa.ChunkedArray, rows: IntArray) -> tuple[tuple[str, ...], AnyArray]:
    """Return the values of a column in alphabetical order, and for every row the place of its value plus one."""
    nothing = np.zeros(len(rows), dtype=np.uint16)
    if not _has_single_values(column.type) or pa.types.is_null(column.type):
        return (), nothing
    coded = column.take(pa.array(rows)).combine_chunks().dictionary_encode()
    words = [
        "" if value is None or value != value else str(value)  # noqa: PLR0124 - NaN
        for value in coded.dictionary.to_pylist()
    ]
    places = np.asarray(coded.indices.fill_null(len(words)))
    used = np.bincount(places, minlength=len(words))
    values = tuple(
        sorted({word for word, count in zip(words, used, strict=False) if word.strip() and count})
    )
    if len(values) > np.iinfo(np.uint16).max:
        return values, nothing
    code_of = {value: number for number, value in enumerate(values, start=1)}
    new_codes = np.array([*(code_of.get(word, 0) for word in words), 0], dtype=np.uint16)
    return values, new_codes[places]


YES, NO = frozenset({"yes", "true"}), frozenset({"no", "false"})
GRADES = frozenset(
    {"low", "medium", "high", "very low", "very high", "average", "middle", "normal"}
)
PREPOSITIONS = frozenset(
    {
        "in",
        "on",
        "at",
        "with",
        "without",
        "under",
        "behind",
        "near",
        "by",
        "outdoors",
        "indoors",
        "beside",
    }
)


@dataclass(frozen=True, kw_only=True)
class Wording:
    """One value in words.

    Args:
        shown: for people, for example `green` or `on the grass`.
        adjective: before the noun, if it can stand there.
        look: in the place of "photo", if it is about the image.
        after: behind the noun, with its preposition.
        apart: behind a comma, if nothing is known of how it is said.
    """

    shown: str
    adjective: str = ""
    look: str = ""
    after: str = ""
    apart: str = ""


def shared_values(values: Iterable[Sequence[str]]) -> frozenset[str]:
    """Return the values that occur in several columns: they do not speak for themselves."""
    counts = Counter(value.lower() for column in values for value in set(column))
    return frozenset(value for value, count in counts.items() if count > 1)


def worded(column: str, value: str, *, shared: frozenset[str] = frozenset()) -> Wording:
    """Return a value in words.

    >>> worded("colour", "green").shown, worded("glasses", "no").shown, worded("contrast", "low").shown, worded("count", "3").shown
    ('green', 'no glasses', 'low contrast', 'count: 3')
    """
    title, text = column.replace("_", " ").strip(), value.replace("_", " ").strip()
    plain = text.lower()
    if plain in YES or plain in NO:
        shown = title if plain in YES else f"no {title}"
        return Wording(shown=shown, after=f"with {title}" if plain in YES else f"without {title}")
    if plain in GRADES:
        shown = text if title.lower() in plain else f"{text} {title}"
        return Wording(shown=shown, after=f"with {shown}")
    if not any(letter.isalpha() for letter in text) or plain in shared:
        return Wording(shown=f"{title}: {text}", after=f"with {title} {text}")
    known = _built_in().get((title.lower(), plain))
    return known or _unlisted(text)


def name_words(
    class_name: str, wordings: Sequence[Wording], *, is_absent: bool = False
) -> tuple[str, str]:
    """Return phrase and contrast of a name.

    >>> name_words("apple", [worded("colour", "green"), worded("place", "on grass")])
    ('a photo of a green apple on grass', 'green, on grass')
    """
    plain = plain_caption(class_name, is_absent=is_absent)
    adjectives = [one.adjective for one in wordings if one.adjective]
    looks = [one.look for one in wordings if one.look]
    afters = [one.after for one in wordings if one.after]
    caption = replace(
        plain,
        adjective=" ".join(adjectives) or None,
        look=looks[0] if looks else None,
        place=" ".join(afters) or None,
    )
    phrase = ", ".join([caption.phrase, *looks[1:], *(one.apart for one in wordings if one.apart)])
    return phrase, ", ".join(one.shown for one in wordings)


def table_words(title: str, pairs: Sequence[tuple[str, str]]) -> str:
    """Return the name of a slice of samples without images: values as `weakspot ask` takes them.

    >>> table_words("apple", [("colour", "green"), ("size", "small")])
    'apple with colour = green and size = small'
    """
    return f"{title} with {' and '.join(f'{column} = {value}' for column, value in pairs)}"


def _unlisted(text: str) -> Wording:
    vocabulary = built_in_vocabulary()
    if text in vocabulary.adjectives:
        return Wording(shown=text, adjective=text)
    if text in vocabulary.looks:
        return Wording(shown=text, look=vocabulary.looks[text])
    if text.lower().split()[0] in PREPOSITIONS:
        return Wording(shown=text, after=text)
    return Wording(shown=text, apart=text)


@cache
def _built_in() -> dict[tuple[str, str], Wording]:
    found: dict[tuple[str, str], Wording] = {}
    for attribute in built_in_attributes():
        for value, wordings in attribute.values.items():
            first = wordings[0]
            starts_well = first.split()[0] in PREPOSITIONS
            wording = {
                "adjective": Wording(shown=value, adjective=first),
                "place": Wording(shown=first if starts_well else value, after=first),
                "look": Wording(shown=value, look=first),
            }.get(attribute.slot, Wording(shown=value, apart=value))
            found |= {(name, value.lower()): wording for name in (attribute.name, *attribute.also)}
    return found


ALL_CLASSES = "all classes"
NOTHING_TO_COMPARE = "There is nothing to compare: no metadata column can be used as an attribute. Assign attributes, or add columns."
MIN_PER_SIDE = 2
MAX_ORDER = 3
MAX_CONSIDERED = 4_000_000
MAX_PICKED = 30
MAX_WEAK = 5
MAX_TRIED = 50


@dataclass(frozen=True, kw_only=True)
class AttributesDiscoverer(ClassDiscoverer):
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

    method = "attributes"
    needs = (Need.COLUMNS,)
    is_always_blind = False
    auto_place = 2
    columns: tuple[str, ...] = ()
    max_order: Annotated[int, Bounds(ge=1, le=MAX_ORDER)] = 3
    min_support: Count = 10
    max_values: Annotated[int, Bounds(ge=2)] = 50
    min_gap: Annotated[float, Bounds(ge=0, lt=1)] = 0.05
    cover: PositiveFraction = 1.0
    max_slices: Count = 200
    max_p: PositiveFraction = 0.05
    max_chance: PositiveFraction = 1.0
    refine_p: PositiveFraction = 0.05
    n_permutations: NonNegativeInt = 199

    def blind_candidates(
        self, samples: SampleSet, problem: ClassProblem, *, seed: int
    ) -> tuple[BlindCandidate, ...]:
        """Return every single value that enough samples of the class have, and enough have not; rare ones count more.

        A slice is rarely a third of its class, and a frequent value has more power anyway.
        """
        table = self._table(samples.dataset, problem.rows)
        of = self.class_samples(samples, problem, DataUse.nothing(), seed=seed)
        most = len(problem.rows) - self.min_support
        counted = [
            ((attribute, code), int(np.count_nonzero(table.codes[:, attribute] == code)))
            for attribute, words in enumerate(table.values)
            for code in range(1, len(words) + 1)
        ]
        return tuple(
            (self._slice(of, table, (pair,), n_inside), n_inside**-0.5)
            for pair, n_inside in counted
            if self.min_support <= n_inside <= most
        )

    def discover(
        self,
        samples: SampleSet,
        criterion: FailureCriterion,
        *,
        seed: int,
        assistants: Assistants = NO_ASSISTANTS,
    ) -> Discovery:
        """Return the slices of every class and a note for every class without any.

        Those that account for failures which no other one explains come first, those least likely by chance first among them.
        """
        table = self._table(samples.dataset, samples.rows)
        notes = [ClassNote(class_name=ALL_CLASSES, note=note) for note in table.notes]
        ranked: list[tuple[tuple[bool, float, float], FailureSlice]] = []
        n_considered = 0
        for of in self.classes(samples, criterion, seed=seed, assistants=assistants):
            note = obstacle(of.problem, min_failures=MIN_PER_SIDE, min_right=MIN_PER_SIDE)
            if note or not table.names:
                notes.append(
                    ClassNote(class_name=of.problem.title, note=note or NOTHING_TO_COMPARE)
                )
                continue
            findings, n_counted, order = self._search(of, table)
            n_considered += n_counted
            kept = [finding for finding in findings if finding.chance <= self.max_chance]
            for one in kept:
                slice_ = self._slice(of, table, one.values, one.n_inside, one.gap, one.chance)
                ranked.append(((not one.is_picked, one.chance, -one.evidence), slice_))
            notes += [
                ClassNote(class_name=of.problem.title, note=remark)
                for remark in self._remarks(of.problem, n_counted, order, len(kept))
            ]
        ranked.sort(key=lambda entry: entry[0])
        slices = tuple(slice_ for _, slice_ in ranked)
        return Discovery(slices=slices, notes=tuple(notes), n_considered=n_considered)

    def _table(self, dataset: Dataset, rows: IntArray) -> AttributeTable:
        return attribute_table(dataset, rows, tuple(self.columns), max_values=self.max_values)

    def _search(self, of: ClassSamples, table: AttributeTable) -> tuple[list[Finding], int, int]:
        problem, rows = of.problem, of.samples.rows
        # Shuffles are dealt out to samples by place, so places must not depend on the order of the table.
        order = np.argsort(np.array(of.samples.dataset.sample_ids(problem.rows)), kind="stable")
        sorter = np.argsort(rows, kind="stable")
        places = sorter[np.searchsorted(rows, problem.rows[order], sorter=sorter)]
        return self.search(
            table.codes[places],
            problem.failed[order],
            self.random(of),
            None if problem.groups is None else problem.groups[order],
            is_absent=table.is_absent,
        )

    def _remarks(self, problem: ClassProblem, n_counted: int, order: int, n_kept: int) -> list[str]:
        remarks = []
        if order < self.max_order:
            remarks.append(
                f"There are too many combinations; only those of at most {order} values were counted."
            )
        if not n_kept:
            remarks.append(
                f"Among {n_counted} combinations of attribute values that at least {self.min_support} samples have, none "
                f"stands out with failures ({problem.n_failed} of {len(problem.rows)} samples failed)."
            )
        return remarks

    def search(
        self,
        codes: AnyArray,
        failed: BoolArray,
        draws: np.random.Generator,
        groups: IntArray | None = None,
        *,
        is_absent: AnyArray | None = None,
    ) -> tuple[list[Finding], int, int]:
        """Return what stands out in a class, how many combinations enough samples have, and how many values were combined at most.

        What accounts for failures comes first, in the order in which it was picked.

        Args:
            codes: [n, a].
            failed: [n].
            draws: for the shuffles.
            groups: [n] number of the group of every sample; None: each is its own.
            is_absent: [a, c] which codes say that something is not there; of two combinations with the same members and evidence
                the one with fewer of them is taken.
        """
        order = affordable_order(
            codes, max_order=self.max_order, min_support=self.min_support, most=MAX_CONSIDERED
        )
        counted = CountedClass(codes, failed, groups, order=order, min_support=self.min_support)
        standing_out = find_standing_out(
            counted.found,
            counted.gaps,
            min_gap=self.min_gap,
            max_p=self.max_p,
            refine_p=self.refine_p,
        )
        if counted.groups is not None:
            standing_out = keep_standing_out_in_groups(
                counted, standing_out, counted.groups, max_p=self.max_p, refine_p=self.refine_p
            )
        pool = Pool.of(counted, standing_out, is_absent)
        picked = self._picked(counted, pool)
        others = [place for place in pool.strong_first() if place not in set(picked)]
        chosen = picked if self.cover < 1.0 else picked + others
        findings = [
            self._finding(counted, int(pool.places[place]), draws, is_picked=number < len(picked))
            for number, place in enumerate(chosen[: self.max_slices])
        ]
        return findings, len(counted.found), order

    def _picked(self, counted: CountedClass, pool: Pool) -> list[int]:
        """Return, in turn, the place in the pool of what accounts best for the failures that those before it do not explain."""
        picked: list[int] = []
        insides: list[BoolArray] = []
        covered = np.zeros(len(counted.failed), dtype=np.bool_)
        memberships = pool.memberships(counted.failed)
        while len(picked) < min(MAX_PICKED, self.max_slices):
            cells = cells_of(insides, len(counted.failed))
            n_weak = sum(not pool.is_strong[place] for place in picked)
            place = self._next(counted, pool, memberships.excess(cells), cells, n_weak)
            if place is None or (self.cover < 1.0 and self._is_covered(counted.failed, covered)):
                break
            picked.append(place)
            insides.append(pool.inside(place, len(counted.failed)))
            covered |= insides[-1]
        return picked

    def _is_covered(self, failed: BoolArray, covered: BoolArray) -> bool:
        return int(failed[~covered].sum()) <= (1.0 - self.cover) * int(failed.sum())

    def _next(
        self,
        counted: CountedClass,
        pool: Pool,
        excess: DoubleArray,
        cells: IntArray,
        n_weak: int,
    ) -> int | None:
        is_open = (excess > 0) & (pool.is_strong | (n_weak < MAX_WEAK))
        scores = np.where(is_open, excess - pool.penalties, -np.inf)
        for place in np.argsort(-np.round(scores, 9), kind="stable")[:MAX_TRIED].tolist():
            if not is_open[place]:
                return None
            inside = pool.inside(place, len(counted.failed))
            if excess_p(inside, counted.failed, cells, counted.groups) <= self.max_p:
                return int(place)
        return None

    def _finding(
        self, counted: CountedClass, place: int, draws: np.random.Generator, *, is_picked: bool
    ) -> Finding:
        return Finding(
            values=counted.values(place),
            n_inside=int(counted.found.n_inside[place]),
            gap=float(counted.gaps[place]),
            chance=counted.chance(place, self.n_permutations, draws),
            evidence=float(counted.scores[place]),
            is_picked=is_picked,
        )

    def _slice(
        self,
        of: ClassSamples,
        table: AttributeTable,
        values: Sequence[tuple[int, int]],
        n_inside: int,
        gap: float | None = None,
        chance: float | None = None,
    ) -> FailureSlice:
        """Return the slice of some values (attribute, code); without a gap nobody knows whether it fails."""
        problem, dataset = of.problem, of.samples.dataset
        pairs = [
            (table.names[attribute], table.values[attribute][code - 1])
            for attribute, code in values
        ]
        rules = tuple(ColumnRule(column=column, values=(value,)) for column, value in pairs)
        phrase, contrast = name_words(
            problem.class_name,
            [worded(*shown_as(dataset.table, *pair), shared=table.shared) for pair in pairs],
            is_absent=problem.side is Side.ABSENT,
        )
        if not dataset.has_images:
            phrase = table_words(problem.title, pairs)
        name = SliceName(phrase=phrase, contrast=contrast, score=gap or 0.0, describer=self.method)
        return self.slice_of(
            of,
            rules[0] if len(rules) == 1 else AllOfRule(rules=rules),
            strength=gap,
            strength_p=chance,
            n_found=n_inside,
            names=(name,),
            more={"seed": of.seed},
        )
