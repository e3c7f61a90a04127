"""Combinations of attribute values on the discovery half: how many samples have them and how many fail; and one as a proven slice."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np
from scipy.special import ndtri

from weakspot.core.arrays import AnyArray, DoubleArray, IntArray
from weakspot.core.errors import DataError, NotEnoughDataError
from weakspot.core.evidence import Share
from weakspot.core.failures import ClassProblem, Side
from weakspot.core.rules import AllOfRule, ColumnRule
from weakspot.core.slices import FailureSlice, SliceName
from weakspot.discover.attributes import (
    AttributesDiscoverer,
    name_words,
    shared_values,
    worded,
)
from weakspot.discover.combinations import Combinations, affordable_order, count_combinations
from weakspot.web.services.attributes import (
    MAX_CHOSEN,
    CodedAttribute,
    coded_attributes,
    have_values,
    predictions_of,
)
from weakspot.web.services.slice_editing import ChangedSlice, changed_slice, with_slices
from weakspot.web.services.view import View, share_of
from weakspot.web.services.workspace import Workspace

LEVEL = 0.95


def lower_ends(failed: IntArray, total: IntArray) -> DoubleArray:
    """Return the lower end of Wilson's interval of every rate [m]; the same figures as `core.statistics.wilson_interval`.

    >>> lower_ends(np.array([8]), np.array([10])).round(4).tolist()
    [0.4902]
    """
    quantile = float(ndtri(0.5 + LEVEL / 2))
    rates, squares = failed / total, quantile**2 / total
    spread = quantile * np.sqrt(rates * (1.0 - rates) / total + squares / (4.0 * total))
    return np.where(failed == 0, 0.0, (rates + squares / 2.0 - spread) / (1.0 + squares))


def worst_first(found: Combinations, places: IntArray | None = None) -> list[int]:
    """Return places of combinations, all by default, highest lower end first; of equals the shorter and then the larger one."""
    kept = np.arange(len(found)) if places is None else places
    ends = np.round(lower_ends(found.failed_inside[kept], found.n_inside[kept]), 9)
    order: list[int] = kept[np.lexsort((-found.n_inside[kept], found.orders[kept], -ends))].tolist()
    return order


def worth_showing(found: Combinations, most: int) -> list[int]:
    """Return the places of the worst combinations, without those to which one of their values adds nothing.

    A single value fails more often than the whole; a further one adds something if even the lower end of the rate with it lies
    above the rate without it.
    """
    if not len(found):
        return []
    ends = lower_ends(found.failed_inside, found.n_inside)
    rates = found.failed_inside / found.n_inside
    adds = rates > found.n_failed / max(found.n_samples, 1)
    for dropped in range(found.attributes.shape[1]):
        with_more = np.flatnonzero((found.orders > 1) & (found.attributes[:, dropped] >= 0))
        if len(with_more):
            adds[with_more] &= ends[with_more] > rates[found.without(with_more, dropped)]
    return worst_first(found, np.flatnonzero(adds))[:most]


MIN_SUPPORT = 5
MAX_COUNTED = 1_000_000
MAX_SHOWN = 2500
MAX_KEPT = 40


class CombinationValue(View):
    """One value of a combination, with what it is called."""

    attribute_id: str
    value_id: str
    attribute: str
    value: str


class CombinationView(View):
    """Samples of the discovery half that have several values.

    Args:
        values: one to three.
        failures: how many of them fail, with interval.
        lift: their failure rate divided by that of the class; null where the class has no failures.
        coverage: how many of the failures of the class are among them.
    """

    values: list[CombinationValue]
    failures: Share
    lift: float | None
    coverage: Share


class CombinationsView(View):
    """Combinations, highest lower end of the failure rate's interval first.

    Args:
        title: the class; null for all classes together.
        attributes: ids of the attributes that were chosen; empty for all.
        failures: of the class.
        min_support: combinations of fewer samples are left out.
        order: values in a combination, at most.
        n_counted: combinations with enough samples.
        combinations: the first of them. Where no attribute was chosen, one to which a value adds nothing is left out: a shorter one
            says the same.
        sentence: what was counted, in words.
    """

    title: str | None
    attributes: list[str]
    failures: Share
    min_support: int
    order: int
    n_counted: int
    combinations: list[CombinationView]
    sentence: str


@dataclass(frozen=True, kw_only=True, eq=False)
class _Counted:
    attributes: tuple[CodedAttribute, ...]
    found: Combinations
    order: int
    places: list[int]


def combinations(
    workspace: Workspace,
    *,
    title: str | None = None,
    chosen: Sequence[str] = (),
    min_support: int = 10,
    limit: int = 100,
) -> CombinationsView:
    """Return the combinations of all values of chosen attributes, or the worst over all attributes.

    Args:
        workspace: the project.
        title: a class; None for all together.
        chosen: ids of one to three attributes, of which every combination has a value each; none for all attributes.
        min_support: combinations of fewer samples are left out; at least 5.
        limit: how many are wanted.

    Raises:
        DataError: if there is no such class or attribute.
        StoreError: if an attribute is not assigned.
    """
    if len(chosen) > MAX_CHOSEN or len(set(chosen)) < len(chosen):
        raise DataError(
            f"Choose at most {MAX_CHOSEN} different attributes.",
            where="attributes",
            given=list(chosen),
        )
    floor = max(min_support, MIN_SUPPORT)
    problem, all_attributes = predictions_of(workspace, title), coded_attributes(workspace)
    if chosen:
        counted = _of_chosen(problem, [all_attributes.attribute(one) for one in chosen], floor)
    else:
        usable = [one for one in all_attributes.attributes if one.codes is not None]
        counted = workspace.recent(
            "combinations",
            (all_attributes.mark, floor, title),
            lambda: _of_all(problem, usable, floor),
            most=MAX_KEPT,
        )
    shown = [_view(counted, place, problem) for place in counted.places[:limit]]
    return CombinationsView(
        title=title,
        attributes=list(chosen),
        failures=share_of(problem, problem.n_failed, len(problem.rows)),
        min_support=floor,
        order=counted.order,
        n_counted=len(counted.found),
        combinations=shown,
        sentence=_sentence(counted, floor, is_chosen=bool(chosen)),
    )


def _of_chosen(problem: ClassProblem, attributes: Sequence[CodedAttribute], floor: int) -> _Counted:
    sizes = [len(one.edited.values) + 1 for one in attributes]
    cells = np.zeros(len(problem.rows), dtype=np.int64)
    for attribute, size in zip(attributes, sizes, strict=True):
        cells = cells * size + attribute.known_codes()[problem.rows]
    n_cells = int(np.prod(sizes))
    n_inside = np.bincount(cells, minlength=n_cells)
    failed_inside = np.bincount(cells[problem.failed], minlength=n_cells)
    codes = np.array(list(product(*[range(size) for size in sizes])), dtype=np.uint16).reshape(
        n_cells, len(sizes)
    )
    kept = (codes > 0).all(axis=1) & (n_inside >= floor)
    padded = np.zeros((int(kept.sum()), MAX_CHOSEN), dtype=np.uint16)
    padded[:, : len(sizes)] = codes[kept]
    places = np.array([*range(len(sizes)), *[-1] * (MAX_CHOSEN - len(sizes))], dtype=np.int32)
    found = Combinations(
        attributes=np.tile(places, (len(padded), 1)),
        codes=padded,
        n_inside=n_inside[kept],
        failed_inside=failed_inside[kept],
        n_samples=len(problem.rows),
        n_failed=problem.n_failed,
    )
    return _Counted(
        attributes=tuple(attributes), found=found, order=len(sizes), places=worst_first(found)
    )


def _of_all(problem: ClassProblem, attributes: Sequence[CodedAttribute], floor: int) -> _Counted:
    codes: AnyArray = np.zeros((len(problem.rows), 0), dtype=np.uint16)
    if attributes:
        codes = np.stack([one.known_codes()[problem.rows] for one in attributes], axis=1)
    order = affordable_order(codes, max_order=MAX_CHOSEN, min_support=floor, most=MAX_COUNTED)
    found = count_combinations(codes, problem.failed, max_order=order, min_support=floor)
    return _Counted(
        attributes=tuple(attributes),
        found=found,
        order=order,
        places=worth_showing(found, MAX_SHOWN),
    )


def _view(counted: _Counted, place: int, problem: ClassProblem) -> CombinationView:
    found = counted.found
    pairs = zip(found.attributes[place].tolist(), found.codes[place].tolist(), strict=True)
    values = [
        _value(counted.attributes[attribute], code) for attribute, code in pairs if attribute >= 0
    ]
    failed = int(found.failed_inside[place])
    failures = share_of(problem, failed, int(found.n_inside[place]))
    return CombinationView(
        values=values,
        failures=failures,
        lift=failures.value * len(problem.rows) / problem.n_failed if problem.n_failed else None,
        coverage=share_of(problem, failed, problem.n_failed),
    )


def _value(attribute: CodedAttribute, code: int) -> CombinationValue:
    value = attribute.edited.values[code - 1]
    return CombinationValue(
        attribute_id=attribute.attribute_id,
        value_id=value.value_id,
        attribute=attribute.edited.name,
        value=value.title,
    )


def _sentence(counted: _Counted, floor: int, *, is_chosen: bool) -> str:
    n_found = len(counted.found)
    if is_chosen:
        return f"{n_found:,} combinations have at least {floor} samples; smaller ones are left out: their rates mean little."
    return (
        f"{n_found:,} combinations of up to {counted.order} values have at least {floor} samples. The worst of so many look bad by"
        " chance too: prove one before you believe it."
    )


def prove_combination(
    workspace: Workspace, title: str, chosen: Mapping[str, str], *, by: str
) -> ChangedSlice:
    """Make a slice of the samples of a class that have all the values, and prove the newest run anew with it.

    Raises:
        DataError: if there is no such class, attribute or value.
        NotEnoughDataError: if hardly any sample has them all.
    """
    found = combination_slice(workspace, title, chosen)
    return changed_slice(with_slices(workspace, [found], by=by), found.slice_id)


def combination_slice(workspace: Workspace, title: str, chosen: Mapping[str, str]) -> FailureSlice:
    """Return a combination as a slice, named by its values; its rule reads the columns, whatever values are called later."""
    problem, attributes = workspace.problem(title), coded_attributes(workspace)
    inside = have_values(workspace, chosen, title)
    n_inside = int(inside.sum())
    if n_inside < MIN_SUPPORT:
        raise NotEnoughDataError(
            f"Only {n_inside} samples of {title!r} on the discovery half have these values; at least {MIN_SUPPORT} are needed.",
            fix="Choose fewer or more common values.",
        )
    # In the order of the columns, so that the same values give the same slice as the method finds.
    given = [attributes.value(*one) for one in chosen.items()]
    pairs = sorted(
        given, key=lambda pair: (not pair[0].edited.is_first, attributes.attributes.index(pair[0]))
    )
    rules = tuple(
        ColumnRule(column=each.edited.column, values=(value.value_id,)) for each, value in pairs
    )
    shared = shared_values(
        [[value.title for value in each.edited.values] for each in attributes.attributes]
    )
    wordings = [worded(each.edited.name, value.title, shared=shared) for each, value in pairs]
    phrase, contrast = name_words(
        problem.class_name, wordings, is_absent=problem.side is Side.ABSENT
    )
    failed, others = int(problem.failed[inside].sum()), len(inside) - n_inside
    gap = failed / n_inside - (problem.n_failed - failed) / max(others, 1)
    return FailureSlice(
        class_name=problem.class_name,
        side=problem.side,
        rule=rules[0] if len(rules) == 1 else AllOfRule(rules=rules),
        method=AttributesDiscoverer.method,
        parameters={"chosen_by": "a person"},
        found_on=workspace.discovery_use,
        strength=gap,
        n_found=n_inside,
        names=(
            SliceName(
                phrase=phrase, contrast=contrast, score=gap, describer=AttributesDiscoverer.method
            ),
        ),
    )
