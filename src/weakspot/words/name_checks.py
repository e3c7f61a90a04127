"""Whether words may be called the name of a slice: the encoder knows them, they fit members, and they hold on the other half.

The confirmation half is asked for images and rules only, never for predictions, so nothing that is found out about the classifier
depends on it. All words that are asked about in a run are one family (decision 027).
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from weakspot.core.arrays import BoolArray, DoubleArray, FloatArray, IntArray, even_part, unit_rows
from weakspot.core.assistants import MIN_AREA, Assistants, SeenInRows
from weakspot.core.errors import ModelError, UnavailableError
from weakspot.core.failures import Side
from weakspot.core.rules import LinearRule, single_rules
from weakspot.core.samples import SampleSet, separating_cut
from weakspot.core.slices import FailureSlice, HeldName, SliceName
from weakspot.core.statistics import RankSum, q_values
from weakspot.words.caption_judging import word_directions
from weakspot.words.captions import hard_to_tell, noun_of, plain_caption

MAX_Q = 0.05
MIN_AUC, MIN_SHARE, MIN_DIFFERENCE = 0.75, 0.5, 0.25
FEWEST = 5
SURE_AREA = 0.95
NEARLY_AS_GOOD = 0.75
MAX_SEEN = 40
TOGETHER = ", "
MIN_SEEN, MIN_MORE_SEEN = 0.5, 0.2
GIVEN_WORDS = frozenset({"keywords", "uncommon-attributes"})


@dataclass(frozen=True, kw_only=True, eq=False)
class _Asked:
    """One name of one slice, and what it is asked of."""

    place: int
    name: SliceName
    is_easy: bool
    held: HeldName | None
    fits_found: float
    is_backed: bool
    is_denied: bool


@dataclass(frozen=True, kw_only=True, eq=False)
class NameChecker:
    """Judges the names of slices.

    Args:
        space: the embeddings that are shared with text.
        assistants: the text side, how well it knows words, and witnesses.
    """

    space: str
    assistants: Assistants

    def check(
        self, slices: Sequence[FailureSlice], halves: Sequence[tuple[SampleSet, SampleSet]]
    ) -> tuple[FailureSlice, ...]:
        """Return slices with their names judged, sure ones first.

        Args:
            slices: with names.
            halves: for each slice, the samples that its words were chosen on and those that only judge them.
        """
        asked: list[_Asked] = []
        for place, (found, pair) in enumerate(zip(slices, halves, strict=True)):
            for is_easy, names in ((False, found.names), (True, found.easy_names)):
                judged_names = [name for name in names if self._is_to_judge(found, name, pair[0])]
                if judged_names:
                    sides = [Members.of(found, one, self.space, is_easy=is_easy) for one in pair]
                    asked += [
                        self._ask(place, name, found, sides, is_easy=is_easy)
                        for name in judged_names
                    ]
        told = [one.held for one in asked]
        corrected = iter(q_values([one.p_value for one in told if one is not None]))
        entered = [
            None if one is None else one.model_copy(update={"q_value": float(next(corrected))})
            for one in told
        ]
        judged: dict[tuple[int, bool], list[SliceName]] = {}
        for one, held in zip(asked, entered, strict=True):
            own = judged.setdefault((one.place, one.is_easy), [])
            own.append(self._judge(one, held, slices[one.place]))
        return tuple(
            _with_names(found, judged.get((place, False), []), judged.get((place, True), []))
            for place, found in enumerate(slices)
        )

    def _is_to_judge(self, found: FailureSlice, name: SliceName, samples: SampleSet) -> bool:
        """Return whether words are somebody's guess; what a person said, and what a column or caption holds, is not."""
        if self.assistants.embed_texts is None or self.space not in samples.spaces:
            return False
        if name.describer == found.method and name.describer not in GIVEN_WORDS:
            return False
        return all(isinstance(one, LinearRule) for one in single_rules(found.rule)) or (
            name.describer != found.method
        )

    def _ask(
        self,
        place: int,
        name: SliceName,
        found: FailureSlice,
        sides: Sequence["Members"],
        *,
        is_easy: bool,
    ) -> _Asked:
        parts = name.contrast.split(TOGETHER)
        first, second = sides
        measured = self._directions(name, found, parts, first.centre)
        fits = [RankSum.of(first.embeddings @ one, first.inside).auc for one in measured]
        asked = [held for one in measured if (held := self._held(one, first, second)) is not None]
        seen = [self._seen(part, second) for part in parts]
        return _Asked(
            place=place,
            name=name,
            is_easy=is_easy,
            # Every part must hold: the one that does so least speaks for all.
            held=min(asked, key=lambda one: (-one.p_value, one.auc), default=None),
            fits_found=min(fits),
            is_backed=all(one is True for one in seen),
            is_denied=any(one is False for one in seen),
        )

    def _directions(
        self, name: SliceName, found: FailureSlice, parts: Sequence[str], centre: FloatArray
    ) -> FloatArray:
        """Return the direction of the whole name [1, d]; of a name of several parts also that of each [1 + m, d]."""
        embed = self.assistants.embed_texts
        if embed is None:
            raise ModelError("Words cannot be checked without a text side.")
        plain = plain_caption(found.class_name, is_absent=found.side is Side.ABSENT).phrase
        texts = unit_rows(
            np.asarray(
                embed([name.phrase, plain, name.contrast.replace(",", "")]), dtype=np.float32
            )
        )
        whole = word_directions(texts[:1], texts[1:2], texts[2:], centre)
        if len(parts) == 1:
            return whole
        alone = unit_rows(np.asarray(embed(parts), dtype=np.float32))
        return np.concatenate([whole, word_directions(alone, alone, alone, centre)])

    def _held(self, direction: FloatArray, first: "Members", second: "Members") -> HeldName | None:
        return held_of(
            first.embeddings @ direction, second.embeddings @ direction, first.inside, second.inside
        )

    def _seen(self, part: str, members: "Members") -> bool | None:
        """Return whether independent witnesses see what is said, and less in the others; None if none can tell."""
        if self.assistants.seen is None or not members.inside.any() or members.inside.all():
            return None
        rows, inside = members.few(MAX_SEEN)
        try:
            sure = self.assistants.seen(rows, part)
        except (ModelError, UnavailableError):
            return None
        if sure is None or not np.isfinite(sure).any():
            return None
        return is_witnessed(part, rows, inside, lambda _rows, _words: sure)

    def _judge(self, asked: _Asked, held: HeldName | None, found: FailureSlice) -> SliceName:
        name = asked.name
        area = self._area(name)
        update: dict[str, object] = {"held": held, "measured": area}
        doubt = next(iter(self._doubts(asked, held, area, found)), "")
        return name.model_copy(update={**update, "is_unsure": bool(doubt), "doubt": doubt})

    def _area(self, name: SliceName) -> float | None:
        """Return how well the least known part was told on held-out images; None if nobody measured some part."""
        measured = self.assistants.measured
        areas = None if measured is None else measured(name.contrast.split(TOGETHER))
        if areas is None or not np.isfinite(areas).all():
            return None
        return round(float(np.min(areas)), 4)

    def _doubts(
        self, asked: _Asked, held: HeldName | None, area: float | None, found: FailureSlice
    ) -> Iterator[str]:
        name = asked.name
        has_witness = asked.is_backed or (name.witness_score or 0.0) > 0
        if asked.is_denied or name.is_doubtful or name.is_untrue:
            yield "a second check does not agree"
        is_hard = _is_hard(name, found)
        if not has_witness and area is None and (is_hard or self.assistants.measured is not None):
            yield "nobody measured how well the encoder tells such words, and there is no second witness"
        if not has_witness and area is not None and area < (SURE_AREA if is_hard else MIN_AREA):
            yield "the encoder often mistakes such words, and there is no second witness"
        if asked.fits_found < MIN_AUC:
            yield "it does not fit members better than the rest of the class"
        if held is None:
            yield "there are too few members that took no part in choosing words"
        elif not holds(held, is_easy=asked.is_easy):
            yield "it does not hold on the images that took no part in choosing words"


@dataclass(frozen=True, kw_only=True, eq=False)
class Members:
    """The samples of a slice's class, one value a group and side.

    Args:
        rows: the first sample of each [n].
        embeddings: mean of unit vectors [n, d].
        inside: which are members [n].
    """

    rows: IntArray
    embeddings: FloatArray
    inside: BoolArray

    @classmethod
    def of(
        cls, found: FailureSlice, samples: SampleSet, space: str, *, is_easy: bool = False
    ) -> "Members":
        """Return the samples of the class; with `is_easy` those outside count as members."""
        rows = found.class_rows(samples)
        embeddings = samples.embeddings(space, rows)
        known = np.isfinite(embeddings).all(axis=1)
        rows, embeddings = rows[known], unit_rows(embeddings[known])
        inside = found.rule.members(samples, rows) != is_easy
        sides = 2 * samples.dataset.groups[rows] + inside
        order = np.argsort(sides, kind="stable")
        starts = np.flatnonzero(np.diff(sides[order], prepend=-1))
        sums = (
            np.add.reduceat(embeddings[order], starts, dtype=np.float64)
            if len(starts)
            else embeddings
        )
        means = sums / np.diff(starts, append=len(order))[:, None]
        first = order[starts]
        return cls(rows=rows[first], embeddings=means.astype(np.float32), inside=inside[first])

    @property
    def centre(self) -> FloatArray:
        none = np.zeros(self.embeddings.shape[1], dtype=np.float32)
        return self.embeddings.mean(axis=0) if len(self.embeddings) else none

    def few(self, most: int) -> tuple[IntArray, BoolArray]:
        """Return rows at even steps, as many of members and others, and which are members."""
        chosen = []
        for side in (np.flatnonzero(self.inside), np.flatnonzero(~self.inside)):
            chosen.append(even_part(side, most))
        places = np.sort(np.concatenate(chosen))
        return self.rows[places], self.inside[places]


def held_of(
    found: FloatArray, fits: FloatArray, found_inside: BoolArray, inside: BoolArray
) -> HeldName | None:
    """Return what samples that took no part in choosing words say of them; None if they are too few.

    Args:
        found: how words fit the samples that they were chosen on [n].
        fits: how they fit the samples that only judge them [m].
        found_inside: which of the first are members [n].
        inside: which of the second are [m].
    """
    if min(inside.sum(), (~inside).sum()) < FEWEST:
        return None
    values = _rounded(fits)
    cut = separating_cut(_rounded(found), found_inside)
    is_fitting = values >= (np.inf if cut is None else cut)
    ranks = RankSum.of(values, inside)
    return HeldName(
        auc=round(ranks.auc, 4),
        p_value=ranks.p_value,
        n_members=int(inside.sum()),
        n_fitting=int(is_fitting[inside].sum()),
        n_others=int((~inside).sum()),
        n_others_fitting=int(is_fitting[~inside].sum()),
    )


def holds(held: HeldName, *, is_easy: bool) -> bool:
    """Return whether words tell members apart and are true of most; the rest of a class is rarely all alike."""
    share = held.n_fitting / held.n_members
    rest = held.n_others_fitting / held.n_others
    is_told = held.q_value <= MAX_Q and held.auc >= MIN_AUC
    return is_told and (is_easy or (share >= MIN_SHARE and share - rest >= MIN_DIFFERENCE))


def _is_hard(name: SliceName, found: FailureSlice) -> bool:
    """Return whether encoders are known to mistake such words: kinds of the class, backgrounds, materials, states."""
    is_kind = found.side is not Side.ABSENT and noun_of(found.class_name) not in name.phrase.lower()
    return is_kind or any(hard_to_tell(part) for part in name.contrast.split(TOGETHER))


def _with_names(
    found: FailureSlice, judged: Sequence[SliceName], easy: Sequence[SliceName]
) -> FailureSlice:
    """Return a slice with judged names, sure ones first, and only sure ones of the other end."""
    told = {name.phrase: _outdone(name, judged) for name in judged}
    names = [told.get(name.phrase, name) for name in found.names]
    unsure = {name.phrase for name in easy if name.is_unsure}
    kept = [name for name in found.easy_names if name.phrase not in unsure]
    ordered = sorted(names, key=lambda name: name.is_unsure)
    return found.model_copy(update={"names": tuple(ordered), "easy_names": tuple(kept)})


def _outdone(name: SliceName, judged: Sequence[SliceName]) -> SliceName:
    """Return a name, not sure if words of the same describer that are not sure fit clearly better."""
    rivals = [one.score for one in judged if one.is_unsure and one.describer == name.describer]
    if name.is_unsure or name.score >= NEARLY_AS_GOOD * max(rivals, default=0.0):
        return name
    return name.model_copy(update={"is_unsure": True, "doubt": "other words fit better"})


def numbered(slices: Sequence[FailureSlice]) -> tuple[FailureSlice, ...]:
    """Return slices with their places among those of their class, in the order in which they are given."""
    counts: dict[tuple[str, Side | None], int] = {}
    found = []
    for one in slices:
        key = one.class_name, one.side
        counts[key] = counts.get(key, 0) + 1
        found.append(one.model_copy(update={"number": counts[key]}))
    return tuple(found)


def _rounded(values: FloatArray) -> DoubleArray:
    return np.asarray(np.round(values.astype(np.float64), 9), dtype=np.float64)


def is_witnessed(words: str, rows: IntArray, inside: BoolArray, seen: SeenInRows | None) -> bool:
    """Return whether independent witnesses see words in samples that are meant, and less in the others.

    Args:
        words: what is said.
        rows: samples [n].
        inside: which of them are meant [n].
        seen: the witnesses; None where there is none.
    """
    sure = None if seen is None else seen(rows, words)
    if sure is None:
        return False
    known = np.isfinite(sure)
    if not (known & inside).any() or not (known & ~inside).any():
        return False
    here, there = float(sure[known & inside].mean()), float(sure[known & ~inside].mean())
    return here >= MIN_SEEN and here - there >= MIN_MORE_SEEN
