"""Words for slices: chosen on the discovery half, judged on the confirmation half, which is asked for no prediction."""

from collections.abc import Collection, Sequence

from weakspot.core.assistants import Assistants
from weakspot.core.failures import FailureCriterion
from weakspot.core.run import RunRecord
from weakspot.core.samples import SampleSet
from weakspot.core.slices import FailureSlice
from weakspot.pipeline.halves import Halves, split_in_halves
from weakspot.pipeline.name_checks import NameChecker, numbered
from weakspot.pipeline.settings import Settings
from weakspot.pipeline.wiring import build_describer
from weakspot.pipeline.withheld import withhold_from_halves
from weakspot.pipeline.worth_naming import worth_naming


def describe_slices(  # noqa: PLR0913 - what is named, by what, and who may be asked
    record: RunRecord,
    samples: SampleSet,
    settings: Settings,
    criterion: FailureCriterion,
    assistants: Assistants,
    *,
    halves: Halves | None = None,
    only: Collection[str] | None = None,
) -> RunRecord:
    """Name the slices of a run that are worth it: words that are sure become titles, others are kept as nearest words.

    With ids, only those get words, and all words of the run are judged again together.
    """
    describer = build_describer(settings)
    named: dict[str, FailureSlice] = {}
    pairs = withhold_from_halves(
        halves or split_in_halves(samples, settings, criterion, slices=record.slices),
        settings.repair.groups,
        slices=record.slices,
    )
    judges = halves_of_slices(record.slices, pairs)
    for discovery, _ in pairs:
        own = found_on(record.slices, discovery)
        shown = discovery if len(discovery) else pairs[0][0]
        chosen = (
            worth_naming(own, shown, criterion)
            if only is None
            else tuple(found for found in own if found.slice_id in only)
        )
        described = describer.describe(chosen, shown, criterion, assistants)
        named |= {found.slice_id: found for found in described}
    slices = numbered([named.get(found.slice_id, found) for found in record.slices])
    space = getattr(describer, "space", "clip")
    checker = NameChecker(space=space, assistants=assistants)
    halves_of = [judges.get(found.slice_id, pairs[0]) for found in slices]
    return record.model_copy(update={"slices": checker.check(slices, halves_of)})


def halves_of_slices(
    slices: Sequence[FailureSlice], pairs: Halves
) -> dict[str, tuple[SampleSet, SampleSet]]:
    """Return, by id, the samples that words of a slice are chosen on and those that only judge them."""
    found: dict[str, tuple[SampleSet, SampleSet]] = {}
    for discovery, confirmation in pairs:
        # Words are chosen where predictions may be looked at, also for rules that were made without.
        pair = (discovery, confirmation) if len(discovery) else pairs[0]
        found |= {one.slice_id: pair for one in found_on(slices, discovery)}
    return found


def found_on(slices: Sequence[FailureSlice], discovery: SampleSet) -> tuple[FailureSlice, ...]:
    """Return the slices that were found on a discovery half."""
    digest = discovery.digest()
    return tuple(found for found in slices if found.found_on.digest == digest)
