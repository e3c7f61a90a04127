"""A combination of attribute values that somebody stands by: it becomes a slice, proven like every other."""

from collections.abc import Sequence

from weakspot.core.errors import NotEnoughDataError
from weakspot.core.failures import Side
from weakspot.core.rules import AllOfRule, ColumnRule
from weakspot.core.slices import FailureSlice, SliceName
from weakspot.discover.attributes.discoverer import METHOD
from weakspot.discover.attributes.wording import name_words, shared_values, worded
from weakspot.web.services.attributes.columns import coded_attributes
from weakspot.web.services.attributes.combinations import LEAST_SUPPORT
from weakspot.web.services.attributes.values import ChosenValue, have_values
from weakspot.web.services.slices.changes import with_slices
from weakspot.web.services.slices.editing import ChangedSlice, changed_slice
from weakspot.web.services.workspace import Workspace


def prove_combination(
    workspace: Workspace, title: str, chosen: Sequence[ChosenValue], *, by: str
) -> ChangedSlice:
    """Make a slice of the samples of a class that have all the values, and prove the newest run anew with it.

    Raises:
        DataError: if there is no such class, attribute or value.
        NotEnoughDataError: if hardly any sample has them all.
    """
    found = combination_slice(workspace, title, chosen)
    return changed_slice(with_slices(workspace, [found], by=by), found.slice_id)


def combination_slice(
    workspace: Workspace, title: str, chosen: Sequence[ChosenValue]
) -> FailureSlice:
    """Return a combination as a slice, named by its values; its rule reads the columns, whatever values are called later."""
    problem, attributes = workspace.problem(title), coded_attributes(workspace)
    inside = have_values(workspace, chosen, title)
    n_inside = int(inside.sum())
    if n_inside < LEAST_SUPPORT:
        raise NotEnoughDataError(
            f"Only {n_inside} samples of {title!r} on the discovery half have these values; at least {LEAST_SUPPORT} are needed.",
            fix="Choose fewer or more common values.",
        )
    # In the order of the columns, so that the same values give the same slice as the method finds.
    given = [attributes.value(one.attribute, one.value) for one in chosen]
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
        method=METHOD,
        parameters={"chosen_by": "a person"},
        found_on=workspace.discovery_use,
        strength=gap,
        n_found=n_inside,
        names=(SliceName(phrase=phrase, contrast=contrast, score=gap, describer=METHOD),),
    )
