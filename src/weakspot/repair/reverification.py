"""Failures looked for again after a repair, in the same way and on the same halves: which slices are gone, which are new."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from weakspot.core.dataset import Dataset
from weakspot.core.errors import DataError, ModelError, NotEnoughDataError
from weakspot.core.evidence import Verdict
from weakspot.core.repairs import Aftermath, SliceAfter
from weakspot.core.samples import SampleSet
from weakspot.core.slices import DataUse, FailureSlice
from weakspot.pipeline.preparation import FEATURES
from weakspot.pipeline.verdicts import Asking, judged
from weakspot.pipeline.wiring import build_describer, build_discoverers, build_verifier
from weakspot.repair.aftermath import aftermath
from weakspot.repair.bench import FittedHead, RepairBench
from weakspot.verify.screening import screened

AFTERMATH_ALPHA = 0.1
"""Error rate of the look after a repair, where the verifier has no setting for it."""


def look_again(
    bench: RepairBench, fitted: FittedHead, *, asking: Asking | None = None
) -> Aftermath:
    """Return what became of the repaired slices, and which confirmed ones are new, with the repaired classifier's answers.

    The halves are those of the first search, although predictions changed: what was seen for finding is kept from confirming.

    Args:
        bench: of the repair.
        fitted: the retrained layer.
        asking: who asks, and the ledger that new slices are read off; without one, only what is tested here counts.
    """
    repaired = _with_answers(bench, fitted)
    folds = [_look_again_in_fold(bench, pair, repaired, asking) for pair in bench.pairs]
    kept = [found for found in folds if found is not None]
    slices: tuple[SliceAfter, ...] = tuple(one for found in kept for one in found.slices)
    return Aftermath(
        measured_on=kept[0].measured_on if kept else DataUse.of(bench.pairs[0][1]),
        slices=slices,
        n_tested=sum(found.n_tested for found in kept),
        note=kept[0].note if kept else "",
    )


def _look_again_in_fold(
    bench: RepairBench,
    pair: tuple[SampleSet, SampleSet],
    repaired: Dataset,
    asking: Asking | None,
) -> Aftermath | None:
    """Test the old slices of this fold together with what is found now, so that error rates hold over all of it."""
    discovery, confirmation = (replace(half, dataset=repaired) for half in pair)
    digest = discovery.digest()
    old = [found for found in bench.slices if found.found_on.digest == digest]
    if len(bench.pairs) == 1:
        old = list(bench.slices)
    # Where no prediction may be read, nothing new is looked for: old rules are measured on all samples.
    new = _find(bench, discovery) if len(discovery) else []
    own_ids = {found.slice_id for found in old}
    new = [found for found in new if found.slice_id not in own_ids]
    if not old and not new:
        return None
    verifier = build_verifier(bench.settings, part=1.0 / len(bench.pairs))
    tested = [*(_refound(found, discovery) for found in old), *new]
    measured = verifier.verify(
        tested, discovery=discovery, confirmation=confirmation, criterion=bench.criterion
    )
    if asking is not None:
        min_gap = float(getattr(verifier, "min_gap", 0.0))
        (measured,) = judged([measured], asking, min_gap=min_gap, slices=tested)
    after = {found.slice_id: entry for found, entry in zip([*old, *new], measured, strict=True)}
    earlier = verifier.verify(
        tested, discovery=pair[0], confirmation=pair[1], criterion=bench.criterion
    )
    before = {found.slice_id: entry for found, entry in zip([*old, *new], earlier, strict=True)}
    confirmed = [
        (found, after[found.slice_id])
        for found in new
        if after[found.slice_id].verdict is Verdict.CONFIRMED
    ]
    alpha = float(getattr(verifier, "alpha", AFTERMATH_ALPHA))
    return aftermath(old, before, after, confirmed, confirmation, alpha=alpha)


def _refound(found: FailureSlice, discovery: SampleSet) -> FailureSlice:
    """Return a slice as one of this search; a plan's slice may come from another project."""
    return found.model_copy(update={"found_on": DataUse.of(discovery)})


def _find(bench: RepairBench, discovery: SampleSet) -> list[FailureSlice]:
    """Return the candidates that every configured method finds now and that pass the screen, named."""
    settings, assistants = bench.settings, bench.prepared.assistants
    candidates: list[FailureSlice] = []
    for part in build_discoverers(settings).values():
        if part.is_baseline:
            continue
        try:
            found = part.discover(
                discovery, bench.criterion, seed=settings.seed, assistants=assistants
            )
        except (DataError, ModelError, NotEnoughDataError):
            continue
        candidates += found.slices
    chosen = settings.discover
    kept = screened(
        candidates, discovery, bench.criterion, largest_p=chosen.screen_p, most=chosen.max_tested
    ).kept
    return list(_named(bench, kept, discovery))


def _named(
    bench: RepairBench, slices: Sequence[FailureSlice], discovery: SampleSet
) -> tuple[FailureSlice, ...]:
    return build_describer(bench.settings).describe(
        slices, discovery, bench.criterion, bench.prepared.assistants
    )


def _with_answers(bench: RepairBench, fitted: FittedHead) -> Dataset:
    dataset = bench.samples.dataset
    known = bench.samples.has_embeddings(FEATURES, bench.samples.rows)
    probabilities = np.full((len(dataset), dataset.n_classes), np.nan, dtype=np.float32)
    probabilities[known] = bench.samples.by_blocks(
        FEATURES, bench.samples.rows[known], fitted.head.probabilities
    )
    if dataset.predictions is None:
        thresholds = dataset.thresholds if fitted.thresholds is None else fitted.thresholds
        return dataset.with_predictions(
            probabilities=np.nan_to_num(probabilities), thresholds=thresholds
        )
    predictions = np.where(known, np.nan_to_num(probabilities).argmax(axis=1), -1)
    return dataset.with_predictions(
        predictions=predictions, probabilities=np.nan_to_num(probabilities)
    )
