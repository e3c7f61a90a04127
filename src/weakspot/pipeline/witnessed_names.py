"""What can be measured in images as the name of a confirmed slice: witnesses see it in members, and not in the rest of the class.

A measured word needs no encoder: light, sharpness, text that was read, colour and size of the object. Only confirmed slices without
a sure name are asked about, and no prediction of the confirmation half is read.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from weakspot.core.assistants import Assistants
from weakspot.core.errors import ModelError, UnavailableError
from weakspot.core.failures import Side
from weakspot.core.run import RunRecord
from weakspot.core.samples import SampleSet
from weakspot.core.slices import FailureSlice, HeldName, SliceName
from weakspot.core.statistics import q_values
from weakspot.lexicon.captions import Caption, plain_caption, single_additions
from weakspot.lexicon.matching import same_contrast
from weakspot.lexicon.titles import title_of
from weakspot.lexicon.vocabulary import ClassWords, built_in_vocabulary
from weakspot.pipeline.halves import Halves
from weakspot.pipeline.name_checks import FEWEST, Members, holds
from weakspot.pipeline.naming import halves_of_slices
from weakspot.pipeline.settings import Settings
from weakspot.pipeline.wiring import build_describer
from weakspot.verify.classes.ranks import RankSum

DESCRIBER = "witnesses"
LOOKS = ("dark", "overexposed", "bright", "blurry", "black and white", "close-up", "far away")
COLOURS = ("red", "green", "yellow", "orange", "brown", "black", "white", "blue", "purple", "pink")
PLACES = ("with text on it",)
LEAST_AUC, LEAST_SEEN, LEAST_MORE = 0.9, 0.5, 0.4
MOST_LOOKED_AT = 40


@dataclass(frozen=True, kw_only=True)
class _Measured:
    """How surely witnesses see words in members and in others."""

    auc: float
    p_value: float
    members: float
    others: float
    n_members: int
    n_others: int
    n_seen: int
    n_others_seen: int

    @property
    def is_clear(self) -> bool:
        return (
            self.auc >= LEAST_AUC
            and self.members >= LEAST_SEEN
            and self.members - self.others >= LEAST_MORE
        )

    @property
    def held(self) -> HeldName:
        return HeldName(
            auc=round(self.auc, 4),
            p_value=self.p_value,
            n_members=self.n_members,
            n_fitting=self.n_seen,
            n_others=self.n_others,
            n_others_fitting=self.n_others_seen,
        )


def with_witnessed_names(
    record: RunRecord, settings: Settings, assistants: Assistants, pairs: Halves
) -> RunRecord:
    """Return a run whose confirmed slices without a sure name are called by what is measured, where that is clear on both halves.

    Args:
        record: a verified run.
        settings: of the project.
        assistants: the witnesses; without any, nothing changes.
        pairs: halves of the samples.
    """
    space = getattr(build_describer(settings), "space", "clip")
    if assistants.seen is None or not all(space in one.spaces for pair in pairs for one in pair):
        return record
    halves = halves_of_slices(record.slices, pairs)
    named = {
        found.slice_id: list(_candidates(found, halves[found.slice_id], assistants, space))
        for found, _ in record.published()
        if found.slice_id in halves and found.name is None
    }
    values = iter(q_values([one.held.p_value for own in named.values() for one in own if one.held]))
    judged = {
        slice_id: [_judged(one, float(next(values))) for one in own]
        for slice_id, own in named.items()
    }
    slices = tuple(_called(found, judged.get(found.slice_id, ())) for found in record.slices)
    return record.model_copy(update={"slices": slices})


def _candidates(
    found: FailureSlice,
    pair: tuple[SampleSet, SampleSet],
    assistants: Assistants,
    space: str,
) -> Iterator[SliceName]:
    """Yield measured words that are clear on the discovery half, clearest first, with what the other half says of them."""
    first, second = (Members.of(found, samples, space) for samples in pair)
    clear = []
    for caption in _captions(found):
        measured = _measure(caption.contrast, first, assistants)
        if measured is not None and measured.is_clear:
            clear.append((measured.auc, measured.members, caption))
    for auc, _, caption in sorted(clear, key=lambda one: (-one[0], -one[1], one[2].contrast)):
        measured = _measure(caption.contrast, second, assistants)
        if measured is not None:
            yield SliceName(
                phrase=caption.phrase,
                contrast=caption.contrast,
                score=round(auc, 4),
                describer=DESCRIBER,
                witness="measured in the images",
                witness_score=round(measured.members - measured.others, 4),
                title=title_of(caption, found.class_name),
                held=measured.held,
                is_unsure=not measured.is_clear,
                doubt="" if measured.is_clear else "it does not hold on the other images",
            )


def _captions(found: FailureSlice) -> Iterator[Caption]:
    plain = plain_caption(found.class_name, is_absent=found.side is Side.ABSENT)
    words = ClassWords(adjectives=COLOURS, places=PLACES)
    for caption in single_additions(plain, words, built_in_vocabulary()):
        if caption.contrast in (*LOOKS, *COLOURS, *PLACES):
            yield caption


def _measure(words: str, members: Members, assistants: Assistants) -> _Measured | None:
    if assistants.seen is None or not len(members.rows):
        return None
    rows, inside = members.few(MOST_LOOKED_AT)
    try:
        sure = assistants.seen(rows, words)
    except (ModelError, UnavailableError):
        return None
    known = np.zeros(len(rows), dtype=np.bool_) if sure is None else np.isfinite(sure)
    if sure is None or min((known & inside).sum(), (known & ~inside).sum()) < FEWEST:
        return None
    scores, inside = sure[known].astype(np.float64), inside[known]
    ranks = RankSum.of(scores, inside)
    return _Measured(
        auc=ranks.auc,
        p_value=ranks.p_value,
        members=float(scores[inside].mean()),
        others=float(scores[~inside].mean()),
        n_members=int(inside.sum()),
        n_others=int((~inside).sum()),
        n_seen=int((scores[inside] >= LEAST_SEEN).sum()),
        n_others_seen=int((scores[~inside] >= LEAST_SEEN).sum()),
    )


def _judged(name: SliceName, q_value: float) -> SliceName:
    if name.held is None:
        return name
    held = name.held.model_copy(update={"q_value": q_value})
    is_unsure = name.is_unsure or not holds(held, is_easy=False)
    doubt = "it does not hold on the other images" if is_unsure else ""
    return name.model_copy(update={"held": held, "is_unsure": is_unsure, "doubt": doubt})


def _called(found: FailureSlice, measured: Sequence[SliceName]) -> FailureSlice:
    """Return a slice with what is surely measured as its title, and what is not sure behind it."""
    sure = [name for name in measured if not name.is_unsure]
    if not sure:
        return found
    others = [name for name in found.names if not same_contrast(name.contrast, sure[0].contrast)]
    return found.model_copy(update={"names": (sure[0], *others)})
