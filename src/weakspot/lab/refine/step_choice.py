"""How far generated images may move a layer, so that what was right stays right."""

from itertools import takewhile

from weakspot.core.samples import SampleSet
from weakspot.lab.refine.request import RefineRequest
from weakspot.lab.refine.subjects import Subject
from weakspot.lab.refine.training import (
    Added,
    RefinedHead,
    Step,
    old_head,
    part_of,
    refined_head,
    rights,
)
from weakspot.repair.measure.predictions import is_measurable
from weakspot.report.wording import count

DEBUG_WEIGHT = 0.5
"""What generated images count where no weight is given: the paper's lambda."""

N_STEPS = 20
CAREFUL = 0.6
"""How much is gone of the way that loses little: it ends just before one more right sample is lost."""


def chosen_head(subject: Subject, added: Added, request: RefineRequest) -> RefinedHead:
    """Return the last layer with the weight that is asked for, or else one that goes as far as clean samples allow.

    That is, from the old layer straight towards the retrained one, 60 % as far as neither the right samples of the discovery half
    nor those among the training samples lose more than `most_lost`; where the first step loses more, nowhere. After Wortsman et
    al., *Robust fine-tuning of zero-shot models* (2022).
    """
    if request.debug_weight is not None:
        return refined_head(subject, added, Step(debug_weight=request.debug_weight))
    whole = refined_head(subject, added, Step(debug_weight=DEBUG_WEIGHT, share=1.0))
    old, clean = old_head(subject), (subject.seed, _training(subject))

    def loses_little(step: int) -> bool:
        part = part_of(subject, old, whole, step / N_STEPS)
        return all(_lost(subject, samples, part) <= request.most_lost for samples in clean)

    allowed = sum(1 for _ in takewhile(loses_little, range(1, N_STEPS + 1)))
    share = int(CAREFUL * allowed) / N_STEPS
    if share == 0.0:
        return refined_head(subject, added, Step(debug_weight=DEBUG_WEIGHT, share=0.0))
    return part_of(subject, old, whole, share)


def step_note(subject: Subject, added: Added, chosen: RefinedHead) -> str:
    """Return what a part of the way costs and saves beside the paper's way, on the discovery half; nothing if that was gone."""
    if chosen.step.share is None:
        return ""
    figures = []
    for head in (chosen, refined_head(subject, added, Step(debug_weight=DEBUG_WEIGHT))):
        before, after = rights(subject, subject.seed, head)
        figures.append((int((~before & after).sum()), int((before & ~after).sum())))
    (resolved, lost), (all_resolved, all_lost) = figures
    n_failures, n_right = int((~before).sum()), int(before.sum())
    return (
        f"On the discovery half this resolves {resolved} of {count(n_failures, 'failure')} and loses {lost} of {n_right:,} right; "
        f"trained from nothing (--weight {DEBUG_WEIGHT}) it would resolve {all_resolved} and lose {all_lost}."
    )


def _training(subject: Subject) -> SampleSet:
    found = subject.bench.samples.only(subject.bench.material.labelled, name="training samples")
    return found.only(found.rows[is_measurable(found)])


def _lost(subject: Subject, samples: SampleSet, refined: RefinedHead) -> float:
    before, after = rights(subject, samples, refined)
    return float((before & ~after).sum() / max(before.sum(), 1))
