"""Words for slices: chosen on the discovery half, judged on the confirmation half, which is asked for no prediction."""

from collections.abc import Sequence

from weakspot.core.assistants import Assistants
from weakspot.core.failures import FailureCriterion
from weakspot.core.run import RunRecord
from weakspot.core.samples import SampleSet
from weakspot.core.slices import FailureSlice
from weakspot.pipeline.halves import Halves, split_in_halves
from weakspot.pipeline.name_checks import NameChecker, numbered
from weakspot.pipeline.settings import Settings
from weakspot.pipeline.wiring import build_describer


def describe_slices(
    record: RunRecord,
    samples: SampleSet,
    settings: Settings,
    criterion: FailureCriterion,
    assistants: Assistants,
    *,
    halves: Halves | None = None,
) -> RunRecord:
    """Name the slices of a run: words that are sure become titles, others are kept as nearest words."""
    describer = build_describer(settings)
    named: dict[str, FailureSlice] = {}
    judges: dict[str, tuple[SampleSet, SampleSet]] = {}
    pairs = halves or split_in_halves(samples, settings, criterion, slices=record.slices)
    for discovery, confirmation in pairs:
        own = found_on(record.slices, discovery)
        # Words are chosen where predictions may be looked at, also for rules that were made without.
        shown, kept = (discovery, confirmation) if len(discovery) else pairs[0]
        described = describer.describe(own, shown, criterion, assistants)
        named |= {found.slice_id: found for found in described}
        judges |= {found.slice_id: (shown, kept) for found in described}
    slices = numbered([named.get(found.slice_id, found) for found in record.slices])
    space = getattr(describer, "space", "clip")
    checker = NameChecker(space=space, assistants=assistants)
    halves_of = [judges.get(found.slice_id, pairs[0]) for found in slices]
    return record.model_copy(update={"slices": checker.check(slices, halves_of)})


def found_on(slices: Sequence[FailureSlice], discovery: SampleSet) -> tuple[FailureSlice, ...]:
    """Return the slices that were found on a discovery half."""
    digest = discovery.digest()
    return tuple(found for found in slices if found.found_on.digest == digest)
