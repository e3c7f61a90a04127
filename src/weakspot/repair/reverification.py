"""Failures looked for again after a repair, in the same way and on the same halves: what became of repaired slices, which are new."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from weakspot.core.arrays import BoolArray
from weakspot.core.dataset import Dataset, Task
from weakspot.core.errors import ConfigError, DataError, ModelError, NotEnoughDataError
from weakspot.core.evidence import Evidence, Verdict
from weakspot.core.repairs import Aftermath, SliceAfter, SliceStatus
from weakspot.core.samples import SampleSet
from weakspot.core.slices import DataUse, FailureSlice
from weakspot.core.statistics import adjusted_p_values, overlap
from weakspot.repair.bench import FittedHead, RepairBench
from weakspot.run.preparation import FEATURES
from weakspot.run.verdicts import Asking, judged
from weakspot.run.wiring import build_describer, build_discoverers, build_verifier
from weakspot.verify.screening import screened

MIN_FALL = 0.2
SAME_AT = 0.5
TESTED = (Verdict.CONFIRMED, Verdict.NOT_CONFIRMED)

Confirmed = tuple[FailureSlice, Evidence]


def aftermath(
    slices: Sequence[FailureSlice],
    before: Mapping[str, Evidence],
    after: Mapping[str, Evidence],
    found: Sequence[Confirmed],
    confirmation: SampleSet,
    *,
    alpha: float,
) -> Aftermath:
    """Return the status of every repaired slice, then the confirmed slices that were not there before.

    A slice is gone if fewer members fail than before and it is no longer confirmed, or fails no more often than the rest of its
    class; smaller if it is still confirmed and at least a fifth of its failures went away; else it stays. A slice that could not
    be tested again is never called gone. A confirmed slice is new if it overlaps less than one half with every repaired slice
    of its class.

    Args:
        slices: the repaired slices.
        before: evidence with the old predictions, by slice id; of the slices found now as well, for their counts.
        after: evidence with the new predictions on the same samples, by slice id.
        found: slices that a fresh search found with the new predictions, with their evidence.
        confirmation: the samples that the evidence was measured on.
        alpha: accepted error rate of the verifier.
    """
    if not 0.0 < alpha < 1.0:
        raise ConfigError("The setting alpha must lie between 0 and 1.", given=alpha)
    known = [one for one in slices if one.slice_id in before and one.slice_id in after]
    again = _tested_again(known, after)
    old = []
    for one in known:
        earlier, entry, q_value = before[one.slice_id], after[one.slice_id], again.get(one.slice_id)
        status = _status(earlier.failures_inside, entry, q_value, alpha)
        old.append(_after(one, earlier, entry, q_value, status))
    fresh = _fresh(found, slices, confirmation)
    missing = [one.title for one, _ in fresh if one.slice_id not in before]
    if missing:
        raise DataError(
            "How often members of a new slice failed before the repair is not known.",
            given=missing[:5],
            fix="Measure every slice that was found now with the old predictions too, and give that as evidence before.",
        )
    new = [
        _after(one, before[one.slice_id], entry, q_value, SliceStatus.NEW)
        for (one, entry), q_value in zip(fresh, _q_values(fresh), strict=True)
        if q_value <= alpha
    ]
    return Aftermath(
        measured_on=DataUse.of(confirmation),
        slices=(*old, *new),
        n_tested=_n_tested(known, after, found),
        note=_note(slices, known, old, confirmation),
    )


def _tested_again(
    slices: Sequence[FailureSlice], after: Mapping[str, Evidence]
) -> dict[str, float]:
    # Of slices with nearly the same members only one is tested; what it says goes for the others.
    entries = {one.slice_id: after[one.slice_id] for one in slices}
    judges = {
        name: after.get(entry.same_as, entry) if entry.same_as is not None else entry
        for name, entry in entries.items()
    }
    tested = {judge.slice_id: judge for judge in judges.values() if judge.verdict in TESTED}
    if not tested:
        return {}
    correction = next(iter(tested.values())).correction
    adjusted = adjusted_p_values(
        [judge.p_value for judge in tested.values()], correction=correction
    ).tolist()
    q_values = dict(zip(tested, adjusted, strict=True))
    return {
        name: q_values[judge.slice_id]
        for name, judge in judges.items()
        if judge.slice_id in q_values
    }


def _after(
    found: FailureSlice,
    before: Evidence,
    entry: Evidence,
    q_value: float | None,
    status: SliceStatus,
) -> SliceAfter:
    return SliceAfter(
        title=found.title,
        slice_id=found.slice_id,
        status=status,
        failures_before=before.failures_inside,
        failures_after=entry.failures_inside,
        n_members=entry.n_inside,
        q_value=q_value,
    )


def _status(
    failures_before: int, entry: Evidence, q_value: float | None, alpha: float
) -> SliceStatus:
    fell = failures_before - entry.failures_inside
    is_unconfirmed = q_value is not None and (
        q_value > alpha or entry.rate_inside <= entry.rate_outside
    )
    if fell > 0 and is_unconfirmed:
        return SliceStatus.GONE
    return (
        SliceStatus.SMALLER
        if fell > 0 and fell >= MIN_FALL * failures_before
        else SliceStatus.STAYS
    )


def _fresh(
    found: Sequence[Confirmed], slices: Sequence[FailureSlice], confirmation: SampleSet
) -> list[Confirmed]:
    return [
        (one, entry)
        for one, entry in found
        if entry.verdict is Verdict.CONFIRMED
        and entry.explained is None
        and not _is_old(one, slices, confirmation)
    ]


def _is_old(found: FailureSlice, slices: Sequence[FailureSlice], confirmation: SampleSet) -> bool:
    own = [one for one in slices if (one.class_name, one.side) == (found.class_name, found.side)]
    rows = found.class_rows(confirmation)
    members: BoolArray = found.rule.members(confirmation, rows)
    return any(overlap(members, one.rule.members(confirmation, rows)) >= SAME_AT for one in own)


def _q_values(new: Sequence[Confirmed]) -> list[float]:
    if not new:
        return []
    correction, n_tested = (
        new[0][1].correction,
        max(len(new), *(entry.n_tested for _, entry in new)),
    )
    if correction == "fwer":
        # The chance of any false finding is held for every choice among the findings.
        return [entry.q_value for _, entry in new]
    # Weights were of mean one over all tests, so those of a part of them never add up to more.
    p_values = np.ones(n_tested)
    p_values[: len(new)] = [min(1.0, entry.p_value / entry.weight) for _, entry in new]
    adjusted = adjusted_p_values(p_values, correction=correction)[: len(new)]
    return [
        max(float(value), entry.q_value) for value, (_, entry) in zip(adjusted, new, strict=True)
    ]


def _n_tested(
    slices: Sequence[FailureSlice], after: Mapping[str, Evidence], found: Sequence[Confirmed]
) -> int:
    old = max((after[one.slice_id].n_tested for one in slices), default=0)
    new = max((entry.n_tested for one, entry in found if one.slice_id not in after), default=0)
    together = max((entry.n_tested for one, entry in found if one.slice_id in after), default=0)
    return max(old, together) + new


def _note(
    slices: Sequence[FailureSlice],
    known: Sequence[FailureSlice],
    old: Sequence[SliceAfter],
    confirmation: SampleSet,
) -> str:
    sentences = [
        "The retrained layer was trained on none of these samples, but the repaired slices were chosen on them, so their fall "
        "here is flattered; what the repair is worth is shown by the samples that decide.",
    ]
    if confirmation.dataset.task is Task.MULTI_LABEL:
        sentences.append("Decision thresholds may have been chosen on them.")
    if any(one.status is SliceStatus.GONE for one in old):
        sentences.append(
            "“Gone” means that the slice can no longer be shown, not that it is proven to be no worse than the rest."
        )
    if n_untested := sum(one.q_value is None for one in old):
        sentences.append(
            f"{_slices(n_untested)} could not be tested again and can therefore not be called gone."
        )
    if n_missing := len(slices) - len(known):
        sentences.append(
            f"{_slices(n_missing)} had not been measured here before and cannot be compared."
        )
    return " ".join(sentences)


def _slices(count: int) -> str:
    return "One repaired slice" if count == 1 else f"{count} repaired slices"


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
    # A plan's slices may come from another project; here they are slices of this search.
    use = DataUse.of(discovery)
    tested = [*(found.model_copy(update={"found_on": use}) for found in old), *new]
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
    return list(build_describer(settings).describe(kept, discovery, bench.criterion, assistants))


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
