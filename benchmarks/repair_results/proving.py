"""The slices that a repair is given: the true ones, or those that a method found and the confirmation half confirmed."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from repair_results.case import RepairCase
from weakspot.core.evidence import Evidence, Verdict
from weakspot.core.slices import FailureSlice
from weakspot.run.settings import DiscoverSettings, Settings
from weakspot.run.wiring import build_discoverers, build_verifier
from weakspot.verify.screening import screened

TRUE = "true slice"


@dataclass(frozen=True, kw_only=True, eq=False)
class GivenSlices:
    """Slices to repair.

    Args:
        source: `true slice`, or the method that found them.
        slices: none where nothing was confirmed.
        evidence: one entry a slice.
    """

    source: str
    slices: tuple[FailureSlice, ...]
    evidence: tuple[Evidence, ...]


def given_slices(case: RepairCase, source: str, settings: Settings) -> GivenSlices:
    """Return what a repair is to work on; finding and confirming see neither test nor pool samples. Names play no part."""
    if source == TRUE:
        samples = case.samples
        halves = (
            replace(case.discovery, dataset=samples.dataset),
            replace(case.confirmation, dataset=samples.dataset),
        )
        evidence = build_verifier(settings).verify(
            case.truths, discovery=halves[0], confirmation=halves[1], criterion=case.criterion
        )
        return GivenSlices(source=source, slices=case.truths, evidence=tuple(evidence))
    chosen = settings.model_copy(update={"discover": DiscoverSettings(methods=(source,))})
    part = build_discoverers(chosen)[source]
    found = part.discover(
        case.discovery, case.criterion, seed=settings.seed, assistants=case.assistants
    )
    limits = chosen.discover
    kept = screened(
        found.slices,
        case.discovery,
        case.criterion,
        largest_p=limits.screen_p,
        most=limits.max_tested,
    ).kept
    evidence = build_verifier(chosen).verify(
        kept, discovery=case.discovery, confirmation=case.confirmation, criterion=case.criterion
    )
    return _confirmed(source, kept, evidence)


def _confirmed(
    source: str, slices: Sequence[FailureSlice], evidence: Sequence[Evidence]
) -> GivenSlices:
    kept = [
        (found, entry)
        for found, entry in zip(slices, evidence, strict=True)
        if entry.verdict is Verdict.CONFIRMED and entry.explained is None
    ]
    return GivenSlices(
        source=source,
        slices=tuple(found for found, _ in kept),
        evidence=tuple(entry for _, entry in kept),
    )
