"""Combinations of attribute values on the discovery half: how many samples have them, and how many of those fail."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np

from weakspot.app.browsing.attribute_columns import CodedAttribute, coded_attributes, outcomes_of
from weakspot.app.browsing.attribute_samples import MOST_CHOSEN
from weakspot.app.browsing.combination_search import worst_first, worth_showing
from weakspot.app.browsing.view import View
from weakspot.app.browsing.workspace import Workspace
from weakspot.core.arrays import AnyArray
from weakspot.core.combinations import Combinations, affordable_order, count_combinations
from weakspot.core.errors import DataError
from weakspot.core.evidence import Share
from weakspot.core.failures import ClassProblem

LEAST_SUPPORT = 5
MOST_COUNTED = 1_000_000
MOST_SHOWN = 2500
MOST_KEPT = 40


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
    workspace: Workspace, *, title: str | None = None, chosen: Sequence[str] = (), min_support: int = 10, limit: int = 100
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
    if len(chosen) > MOST_CHOSEN or len(set(chosen)) < len(chosen):
        raise DataError(f"Choose at most {MOST_CHOSEN} different attributes.", where="attributes", given=list(chosen))
    floor = max(min_support, LEAST_SUPPORT)
    problem, all_attributes = outcomes_of(workspace, title), coded_attributes(workspace)
    if chosen:
        counted = _of_chosen(problem, [all_attributes.attribute(one) for one in chosen], floor)
    else:
        name = f"combinations {floor} {title!r}"
        kept = all_attributes.views.get(name)
        if kept is None:
            _make_room(all_attributes.views)
            usable = [one for one in all_attributes.attributes if one.codes is not None]
            kept = all_attributes.views[name] = _of_all(problem, usable, floor)
        assert isinstance(kept, _Counted)
        counted = kept
    shown = [_view(counted, place, problem) for place in counted.places[:limit]]
    return CombinationsView(
        title=title,
        attributes=list(chosen),
        failures=Share.of(problem.n_failed, len(problem.rows)),
        min_support=floor,
        order=counted.order,
        n_counted=len(counted.found),
        combinations=shown,
        sentence=_sentence(counted, floor, is_chosen=bool(chosen)),
    )


def _make_room(views: dict[str, object]) -> None:
    kept = [name for name, view in views.items() if isinstance(view, _Counted)]
    for name in kept[: max(0, len(kept) - MOST_KEPT)]:
        views.pop(name, None)


def _of_chosen(problem: ClassProblem, attributes: Sequence[CodedAttribute], floor: int) -> _Counted:
    """Count every cell of the table of the chosen attributes."""
    sizes = [len(one.edited.values) + 1 for one in attributes]
    cells = np.zeros(len(problem.rows), dtype=np.int64)
    for attribute, size in zip(attributes, sizes, strict=True):
        cells = cells * size + attribute.known_codes()[problem.rows]
    n_cells = int(np.prod(sizes))
    n_inside = np.bincount(cells, minlength=n_cells)
    failed_inside = np.bincount(cells[problem.failed], minlength=n_cells)
    codes = np.array(list(product(*[range(size) for size in sizes])), dtype=np.uint16).reshape(n_cells, len(sizes))
    kept = (codes > 0).all(axis=1) & (n_inside >= floor)
    padded = np.zeros((int(kept.sum()), MOST_CHOSEN), dtype=np.uint16)
    padded[:, : len(sizes)] = codes[kept]
    places = np.array([*range(len(sizes)), *[-1] * (MOST_CHOSEN - len(sizes))], dtype=np.int32)
    found = Combinations(
        attributes=np.tile(places, (len(padded), 1)),
        codes=padded,
        n_inside=n_inside[kept],
        failed_inside=failed_inside[kept],
        n_samples=len(problem.rows),
        n_failed=problem.n_failed,
    )
    return _Counted(attributes=tuple(attributes), found=found, order=len(sizes), places=worst_first(found))


def _of_all(problem: ClassProblem, attributes: Sequence[CodedAttribute], floor: int) -> _Counted:
    codes: AnyArray = np.zeros((len(problem.rows), 0), dtype=np.uint16)
    if attributes:
        codes = np.stack([one.known_codes()[problem.rows] for one in attributes], axis=1)
    order = affordable_order(codes, max_order=MOST_CHOSEN, min_support=floor, most=MOST_COUNTED)
    found = count_combinations(codes, problem.failed, max_order=order, min_support=floor)
    return _Counted(attributes=tuple(attributes), found=found, order=order, places=worth_showing(found, MOST_SHOWN))


def _view(counted: _Counted, place: int, problem: ClassProblem) -> CombinationView:
    found = counted.found
    pairs = zip(found.attributes[place].tolist(), found.codes[place].tolist(), strict=True)
    values = [_value(counted.attributes[attribute], code) for attribute, code in pairs if attribute >= 0]
    failed = int(found.failed_inside[place])
    failures = Share.of(failed, int(found.n_inside[place]))
    return CombinationView(
        values=values,
        failures=failures,
        lift=failures.value * len(problem.rows) / problem.n_failed if problem.n_failed else None,
        coverage=Share.of(failed, problem.n_failed),
    )


def _value(attribute: CodedAttribute, code: int) -> CombinationValue:
    value = attribute.edited.values[code - 1]
    return CombinationValue(
        attribute_id=attribute.attribute_id, value_id=value.value_id, attribute=attribute.edited.name, value=value.title
    )


def _sentence(counted: _Counted, floor: int, *, is_chosen: bool) -> str:
    n_found = len(counted.found)
    if is_chosen:
        return (
            f"{n_found:,} combinations have at least {floor} samples; smaller ones are left out, because their rates mean little."
        )
    return (
        f"{n_found:,} combinations of up to {counted.order} values have at least {floor} samples. The worst of so many look bad by"
        " chance too: prove one before you believe it."
    )
