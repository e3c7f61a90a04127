"""A combination of attribute values that somebody stands by: it becomes a slice, proven like every other."""

from collections.abc import Sequence

from weakspot.app.browsing.attribute_columns import coded_attributes
from weakspot.app.browsing.attribute_samples import ChosenValue, have_values
from weakspot.app.browsing.combinations import LEAST_SUPPORT
from weakspot.app.browsing.steering import with_slices
from weakspot.app.browsing.view import View
from weakspot.app.browsing.workspace import Workspace
from weakspot.core.errors import NotEnoughDataError, StoreError
from weakspot.core.evidence import Interval, Share, Verdict
from weakspot.core.failures import Side
from weakspot.core.rules import AllOfRule, ColumnRule
from weakspot.core.slices import DataUse, FailureSlice, SliceName
from weakspot.discover.attributes.discoverer import METHOD
from weakspot.discover.attributes.wording import name_words, shared_values, worded


class ProvenCombination(View):
    """The slice that a combination became.

    Args:
        run_id: the run that it is part of.
        slice_id: the slice.
        title: the slice as people read it.
        verdict: what the evidence allows to say.
        inside: failures among the samples of the class on the confirmation half that have all the values.
        outside: failures among its other samples there.
        q_value: error rate at which this slice would just be published, over all that was tested.
        n_tested: how many slices were tested together.
        same_as: the slice with nearly the same members that was tested in its place.
    """

    run_id: str
    slice_id: str
    title: str
    verdict: Verdict
    inside: Share
    outside: Share
    q_value: float
    n_tested: int
    same_as: str | None


def prove_combination(workspace: Workspace, title: str, chosen: Sequence[ChosenValue], *, by: str) -> ProvenCombination:
    """Make a slice of the samples of a class that have all the values, and prove the newest run anew with it.

    Raises:
        DataError: if there is no such class, attribute or value.
        NotEnoughDataError: if hardly any sample has them all.
    """
    found = combination_slice(workspace, title, chosen)
    record = with_slices(workspace, [found], by=by)
    entry = next((one for one in record.evidence if one.slice_id == found.slice_id), None)
    if entry is None:
        raise StoreError("The slice was not measured.", where=record.run_id)
    kept = record.slice_by_id(found.slice_id)
    return ProvenCombination(
        run_id=record.run_id,
        slice_id=found.slice_id,
        title=kept.title,
        verdict=entry.verdict,
        inside=_share(entry.failures_inside, entry.n_inside, entry.interval_inside),
        outside=_share(entry.failures_outside, entry.n_outside, entry.interval_outside),
        q_value=entry.q_value,
        n_tested=entry.n_tested,
        same_as=entry.same_as,
    )


def _share(count: int, total: int, interval: Interval) -> Share:
    return Share(count=count, total=total, value=count / total if total else 0.0, interval=interval)


def combination_slice(workspace: Workspace, title: str, chosen: Sequence[ChosenValue]) -> FailureSlice:
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
    pairs = sorted(given, key=lambda pair: (not pair[0].edited.is_first, attributes.attributes.index(pair[0])))
    rules = tuple(ColumnRule(column=each.edited.column, values=(value.value_id,)) for each, value in pairs)
    shared = shared_values([[value.title for value in each.edited.values] for each in attributes.attributes])
    wordings = [worded(each.edited.name, value.title, shared=shared) for each, value in pairs]
    phrase, contrast = name_words(problem.class_name, wordings, is_absent=problem.side is Side.ABSENT)
    failed, others = int(problem.failed[inside].sum()), len(inside) - n_inside
    gap = failed / n_inside - (problem.n_failed - failed) / max(others, 1)
    return FailureSlice(
        class_name=problem.class_name,
        side=problem.side,
        rule=rules[0] if len(rules) == 1 else AllOfRule(rules=rules),
        method=METHOD,
        parameters={"chosen_by": "a person"},
        found_on=_discovery_use(workspace),
        strength=gap,
        n_found=n_inside,
        names=(SliceName(phrase=phrase, contrast=contrast, score=gap, describer=METHOD),),
    )


def _discovery_use(workspace: Workspace) -> DataUse:
    found = workspace.once("use of the discovery half", lambda: DataUse.of(workspace.discovery))
    assert isinstance(found, DataUse)
    return found
