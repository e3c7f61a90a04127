"""Comparisons in the ledger of the project whose slices, and whose held-out samples, they are about."""

import hashlib
from collections.abc import Mapping, Sequence
from itertools import groupby

from weakspot.compare.across import (
    SliceDifference,
    SliceOnModel,
    SlicePredictions,
    is_tested,
)
from weakspot.pipeline.ledger import AskedTest, Ledger

Ledgers = Mapping[tuple[str, str], Ledger]
"""By the project that slices were found on and the classifier that is asked about."""
PROMISE = (
    "That a slice holds on a classifier is said over everything that its samples were ever asked about that classifier; how two "
    "classifiers differ is corrected within this comparison only."
)


def judged_slices(
    found: Sequence[SliceOnModel], slices: Sequence[SlicePredictions], ledgers: Ledgers
) -> tuple[SliceOnModel, ...]:
    """Return slices on classifiers with what the ledgers say of them; what was asked before keeps its answer."""
    questions = {one.slice_id: one.questions for one in slices}
    said: dict[tuple[str, str, str], tuple[float, bool]] = {}
    ordered = sorted(filter(is_tested, found), key=lambda one: (one.found_on, one.model))
    for place, own in groupby(ordered, key=lambda one: (one.found_on, one.model)):
        asked = list(own)
        tests = [
            AskedTest(
                key=questions[one.slice_id][one.model],
                p_value=one.p_value if one.rate_inside > one.rate_outside else 1.0,
                about=f"{one.title} on {one.model}",
            )
            for one in asked
        ]
        answers = ledgers[place].ask(tests, source="compare")
        for one, answer in zip(asked, answers, strict=True):
            said[(*place, one.slice_id)] = answer.q_value, answer.is_found
    return tuple(
        one.model_copy(update={"q_value": q_value, "holds": is_found})
        for one in found
        for q_value, is_found in [said.get((one.found_on, one.model, one.slice_id), (1.0, False))]
    )


def note_differences(
    found: Sequence[SliceDifference], slices: Sequence[SlicePredictions], ledgers: Ledgers
) -> None:
    """Write down which pairs of classifiers were compared on which slices."""
    owners = {one.slice_id: one for one in slices}
    by_owner: dict[str, list[AskedTest]] = {}
    for one in found:
        own = owners[one.slice_id]
        named = "\n".join(sorted((own.questions[one.first], own.questions[one.second])))
        test = AskedTest(
            key=f"differ {hashlib.sha256(named.encode()).hexdigest()[:24]}",
            p_value=one.p_value,
            about=f"{one.title}: {one.first} or {one.second}",
        )
        by_owner.setdefault(own.found_on, []).append(test)
    for owner, tests in by_owner.items():
        ledgers[owner, owner].note(tests, source="compare")
