"""Which word a confirmed slice may be called by: what encoder and witnesses say of words, and the choice among them."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from weakspot.core.arrays import BoolArray, DoubleArray, FloatArray, IntArray, even_part, unit_rows
from weakspot.core.assistants import MIN_AREA, AnswerRows, Assistants, EmbedTexts, SeenInRows
from weakspot.core.errors import ModelError, UnavailableError
from weakspot.core.failures import Side
from weakspot.core.rules import LinearRule, single_rules
from weakspot.core.samples import SampleSet, separating_cut
from weakspot.core.slices import FailureSlice, HeldName, SliceName
from weakspot.core.statistics import RankSum, q_values
from weakspot.words.caption_judging import word_directions
from weakspot.words.captions import (
    Caption,
    hard_to_tell,
    noun_of,
    plain_caption,
    reference_phrase,
    with_article,
)
from weakspot.words.meanings import ANY_TEXT, WEATHER, WRITING, are_near, says_more
from weakspot.words.wordnet import is_known

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


SEEN = 0.5
MAX_ASKED = 10
# Light and sharpness last: they often only go with what else is odd.
MEASURED = (
    "pixelated",
    "noisy",
    "sketch",
    "black and white",
    "overexposed",
    "dark",
    "bright",
    "blurry",
)
"""Looks that pixels tell."""
N_DRAWS = 200
SEED = 0
SMALLEST = 1e-9


@dataclass(frozen=True, kw_only=True)
class Sight:
    """How surely witnesses see words in members and in others.

    Args:
        auc: how well that tells members from others.
        p_value: chance of telling them so well if nothing differs.
        members: mean sureness in members.
        others: mean sureness in others.
        n_members: members that were looked at.
        n_others: others that were looked at.
        n_seen: members in which it is seen.
        n_others_seen: others in which it is seen.
    """

    auc: float
    p_value: float
    members: float
    others: float
    n_members: int
    n_others: int
    n_seen: int
    n_others_seen: int

    @classmethod
    def of(cls, scores: DoubleArray, inside: BoolArray) -> "Sight":
        ranks = RankSum.of(scores, inside)
        return cls(
            auc=ranks.auc,
            p_value=ranks.p_value,
            members=float(scores[inside].mean()),
            others=float(scores[~inside].mean()),
            n_members=int(inside.sum()),
            n_others=int((~inside).sum()),
            n_seen=int((scores[inside] >= SEEN).sum()),
            n_others_seen=int((scores[~inside] >= SEEN).sum()),
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


def look(words: str, members: Members, assistants: Assistants, *, most: int) -> Sight | None:
    """Return what is seen of words in at most so many members and others; None if nobody can tell.

    A question answerer is asked first, about fewer, but for what pixels measure.
    """
    if not len(members.rows):
        return None
    asked = assistants.answers
    if asked is not None and (words not in MEASURED or assistants.seen is None):
        answered = _sight(lambda rows: _answered(rows, words, asked), members, min(most, MAX_ASKED))
        if answered is not None:
            return answered
    seen = assistants.seen
    return None if seen is None else _sight(lambda rows: seen(rows, words), members, most)


def question_for(words: str) -> str:
    """Return what a question answerer is asked of an image.

    >>> [question_for(words) for words in ("green", "horse", "with a label", "in a kitchen")]
    ['Is it green?', 'Is it a horse?', 'Is it shown with a label?', 'Is it in a kitchen?']
    """
    if words.startswith("with "):
        return f"Is it shown {words}?"
    is_thing = is_known(words, "noun") and not is_known(words, "adj")
    return f"Is it {with_article(words) if is_thing else words}?"


def _answered(rows: IntArray, words: str, answers: AnswerRows) -> FloatArray:
    told = answers(rows, question_for(words))
    first = [text.lower().replace(",", " ").replace(".", " ").split()[:1] for text in told]
    values = [1.0 if one == ["yes"] else 0.0 if one == ["no"] else np.nan for one in first]
    return np.array(values, dtype=np.float32)


def _sight(
    ask: Callable[[IntArray], FloatArray | None], members: Members, most: int
) -> Sight | None:
    rows, inside = members.few(most)
    try:
        sure = ask(rows)
    except (ModelError, UnavailableError):
        return None
    known = np.zeros(len(rows), dtype=np.bool_) if sure is None else np.isfinite(sure)
    if sure is None or min((known & inside).sum(), (known & ~inside).sum()) < FEWEST:
        return None
    return Sight.of(sure[known].astype(np.float64), inside[known])


@dataclass(frozen=True, kw_only=True, eq=False)
class Fits:
    """How captions fit the samples of a class, by the encoder.

    Args:
        captions: what is asked about [m].
        first: similarities [n, m] of the samples that words are chosen on.
        second: the same of those that only judge them.
        halves: which are members, of both.
    """

    captions: tuple[Caption, ...]
    first: FloatArray
    second: FloatArray
    halves: tuple[BoolArray, BoolArray]

    @classmethod
    def of(
        cls,
        captions: Sequence[Caption],
        plain: Caption,
        pair: tuple[Members, Members],
        embed: EmbedTexts,
    ) -> "Fits":
        """Return how captions fit the members and the others of both halves."""
        phrases, references, words = (
            unit_rows(np.asarray(embed(said), dtype=np.float32))
            for said in (
                [one.phrase for one in captions],
                [reference_phrase(plain, one) for one in captions],
                [one.contrast.replace(",", "") for one in captions],
            )
        )
        directions = word_directions(phrases, references, words, pair[0].centre)
        first, second = (np.asarray(one.embeddings @ directions.T) for one in pair)
        return cls(
            captions=tuple(captions),
            first=first,
            second=second,
            halves=(pair[0].inside, pair[1].inside),
        )

    @cached_property
    def chosen(self) -> DoubleArray:
        """Return how far members lie above the others where words are chosen [m], in deviations."""
        weights = np.ones((1, len(self.first)))
        return np.asarray(_distances(self.first, self.halves[0], weights)[0])

    @cached_property
    def drawn(self) -> DoubleArray:
        """Return the same of all samples [1 + draws, m], and of samples drawn with replacement from them."""
        values, inside = np.concatenate([self.first, self.second]), np.concatenate(self.halves)
        random = np.random.default_rng(SEED)
        weights = np.zeros((1 + N_DRAWS, len(inside)))
        weights[0] = 1.0
        for side in (np.flatnonzero(inside), np.flatnonzero(~inside)):
            if len(side):
                weights[1:, side] = random.multinomial(
                    len(side), np.full(len(side), 1 / len(side)), size=N_DRAWS
                )
        return _distances(values, inside, weights)

    def beats(self, one: int, other: int) -> float:
        """Return how often a caption sets members further apart than another, over the draws."""
        return float((self.drawn[1:, one] > self.drawn[1:, other]).mean())

    def held(self, place: int) -> HeldName | None:
        """Return what the samples say that took no part in choosing; None if they are too few."""
        return held_of(self.first[:, place], self.second[:, place], self.halves[0], self.halves[1])

    def fits_found(self, place: int) -> float:
        """Return how well a caption tells members where words are chosen."""
        return RankSum.of(self.first[:, place].astype(np.float64), self.halves[0]).auc


def _distances(values: FloatArray, inside: BoolArray, weights: DoubleArray) -> DoubleArray:
    """Return, for each row of weights [k, n], members' mean less the others' in deviations [k, m]."""
    means, variances = [], []
    for side in (inside, ~inside):
        own = values[side].astype(np.float64)
        shares = weights[:, side] / np.maximum(
            weights[:, side].sum(axis=1, keepdims=True), SMALLEST
        )
        means.append(shares @ own)
        variances.append(np.maximum(shares @ own**2 - means[-1] ** 2, 0.0))
    spread = np.sqrt((variances[0] + variances[1]) / 2 + SMALLEST)
    return np.asarray((means[0] - means[1]) / spread)


DEFINING_AUC, CLEAR_AUC, MIN_MORE = 0.97, 0.9, 0.4
BACKED_SEEN, BACKED_MORE, BACKED_AUC = 0.5, 0.25, 0.8
SELDOM_SEEN, TIMES_AS_MUCH = 0.15, 2.0
DENIED_AUC, DENIED_SEEN = 0.7, 0.25
OFTEN, NEARLY_AS_FAR = 0.95, 0.75
MIN_APART, MIN_APART_ALONE = 2.5, 3.0
NEARLY_ALL, HARDLY_ANY = 0.8, 0.1
SOME, NONE = 0.2, 0.02
HALF_AS_FAR = 0.5
LIGHT = ("dark", "bright")
HUES = ("red", "orange", "yellow", "green", "blue", "purple", "pink", "brown")
KIND, ADJECTIVE, PLACE = "noun", "adjective", "place"


@dataclass(frozen=True, kw_only=True, eq=False)
class Candidate:
    """A word for a slice, and what is known of it.

    Args:
        caption: the class with the word.
        place: among the captions that the encoder was asked about; None if it was not.
        area: how well the text side told held-out images by it; None if nobody measured it.
        sights: what witnesses see of it on both halves; none where they cannot tell.
        held: what the samples say that took no part in choosing it, corrected for all words of the run.
        fits_found: how well it tells members where it was chosen.
    """

    caption: Caption
    place: int | None
    area: float | None
    sights: tuple[Sight, ...]
    held: HeldName | None
    fits_found: float

    @property
    def contrast(self) -> str:
        return self.caption.contrast

    @property
    def slot(self) -> str:
        """Return where the word stands in its caption."""
        return self.caption.added[0][0]

    @property
    def is_background(self) -> bool:
        return self.contrast.endswith(" background")

    @property
    def is_backed(self) -> bool:
        """Return whether witnesses see it in members, and less in the others, on both halves.

        Pixels are measured on a scale that means something; networks are sure of little in small images, and may still tell.
        """
        is_seen = _are_seen(self.sights) if self.sights else False
        return bool(self.sights) and (is_seen or self._is_ranked_apart or self._is_nowhere_else)

    @property
    def _is_ranked_apart(self) -> bool:
        least = BACKED_SEEN if self.contrast in MEASURED else SELDOM_SEEN
        members, others = _mean_sureness(self.sights)
        is_more = self.contrast in MEASURED or members >= TIMES_AS_MUCH * others
        is_told = self._auc >= BACKED_AUC and all(one.auc >= MIN_AUC for one in self.sights)
        return members >= least and is_more and is_told

    @property
    def _is_nowhere_else(self) -> bool:
        """Return whether it is seen in some members of both halves and in no other: a network that says little and is not mistaken."""
        n_members, n_seen, n_others, n_others_seen = self._counts
        is_some = n_seen >= SOME * n_members and all(one.n_seen for one in self.sights)
        is_none = n_others_seen <= NONE * n_others
        return is_some and is_none and self._auc >= DENIED_AUC

    @property
    def is_denied(self) -> bool:
        """Return whether witnesses who can tell it do not see it more in members."""
        if not self.sights or self.is_backed:
            return False
        return self._auc < DENIED_AUC or all(one.members < DENIED_SEEN for one in self.sights)

    @property
    def is_clear(self) -> bool:
        """Return whether witnesses alone tell members by it."""
        return self._is_told(CLEAR_AUC)

    @property
    def is_defining(self) -> bool:
        """Return whether it is a look that nearly all members have, and hardly another sample of the class.

        A slice is found as well as it may, so that some of its members are no members of what it is about: both halves count together.
        """
        is_look = self.contrast in MEASURED
        return is_look and (self._is_told(DEFINING_AUC) or self._is_in_nearly_all)

    @property
    def _is_in_nearly_all(self) -> bool:
        n_members, n_seen, n_others, n_others_seen = self._counts
        is_so = n_seen >= NEARLY_ALL * n_members and n_others_seen <= HARDLY_ANY * n_others
        return is_so and self._auc >= CLEAR_AUC

    @property
    def is_graded(self) -> bool:
        """Return whether it is a look that nearly all members have more of than the rest of the class, which may have it too."""
        is_look = self.contrast in MEASURED and bool(self.sights)
        return is_look and all(
            one.auc >= DEFINING_AUC and one.n_seen >= NEARLY_ALL * one.n_members
            for one in self.sights
        )

    @property
    def _counts(self) -> tuple[int, int, int, int]:
        """Return members, members in which it is seen, others, and others in which it is seen, of both halves together."""
        n_members, n_seen, n_others, n_others_seen = (
            sum(getattr(one, count) for one in self.sights)
            for count in ("n_members", "n_seen", "n_others", "n_others_seen")
        )
        return n_members, n_seen, n_others, n_others_seen

    @property
    def _auc(self) -> float:
        return sum(one.auc for one in self.sights) / max(1, len(self.sights))

    def _is_told(self, least: float) -> bool:
        return bool(self.sights) and all(
            one.auc >= least and one.members >= BACKED_SEEN and one.members - one.others >= MIN_MORE
            for one in self.sights
        )

    @property
    def is_held(self) -> bool:
        return self.held is not None and holds(self.held, is_easy=False)

    @property
    def may_stand_alone(self) -> bool:
        """Return whether the encoder may say it although no witness backs it.

        Colours may where the witness only leans that way, since masks miss parts of the object; other words only if no
        witness can tell them. Kinds and weather never: encoders see fog in whatever is small, pale or blurred.
        """
        is_told = bool(self.sights) and self.slot != ADJECTIVE
        return not is_told and self.slot != KIND and self.contrast not in WEATHER

    @property
    def holds(self) -> bool:
        """Return whether the encoder knows it, and it fits and holds."""
        is_hard = hard_to_tell(self.contrast)
        is_known = self.area is not None and self.area >= (SURE_AREA if is_hard else MIN_AREA)
        return (is_known or self.is_backed) and self.fits_found >= MIN_AUC and self.is_held


def _plainest(ranked: Sequence[Candidate]) -> Candidate | None:
    """Return the first of words, but rather than a kind of the class an adjective, and than a background a place.

    Green apples, not Granny Smiths; birds in the sky, not on a blue background.
    """
    first = next(iter(ranked), None)
    if first is None or not (first.slot == KIND or first.is_background):
        return first
    wanted = ADJECTIVE if first.slot == KIND else PLACE
    plainer = (one for one in ranked if one.slot == wanted and not one.is_background)
    return next(plainer, first)


def _mean_sureness(sights: Sequence[Sight]) -> tuple[float, float]:
    """Return how surely it is seen in members and in others, of both halves together."""
    members, others = (
        sum(getattr(one, side) for one in sights) / len(sights) for side in ("members", "others")
    )
    return members, others


def _are_seen(sights: Sequence[Sight]) -> bool:
    """Return whether both halves together see it in members and less in others, and neither the other way round."""
    members, others = _mean_sureness(sights)
    is_one_way = all(one.members > one.others for one in sights)
    return is_one_way and members >= BACKED_SEEN and members - others >= BACKED_MORE


@dataclass(frozen=True, kw_only=True, eq=False)
class Choice:
    """Chooses among the words for one slice.

    Args:
        candidates: all words that were looked into.
        fits: how the encoder's words fit.
    """

    candidates: tuple[Candidate, ...]
    fits: Fits | None

    def title(self) -> Candidate | None:
        """Return the word that the slice may be called by; None if no word is sure."""
        told = self._backed() or self._told_by_the_encoder()
        return self._defining(told) or told or self._graded() or self._measured()

    def _defining(self, told: Candidate | None) -> Candidate | None:
        """Return the look that nearly all members have; a hue that is told explains that they are darker or brighter."""
        found = [
            one
            for one in self.candidates
            if one.is_defining and one.is_held and not self._is_explained(one, told)
        ]
        found = [
            one for one in found if not any(says_more(two.contrast, one.contrast) for two in found)
        ]
        return min(found, key=lambda one: MEASURED.index(one.contrast), default=None)

    def _is_explained(self, one: Candidate, told: Candidate | None) -> bool:
        """Return whether a word for light only goes with a hue, which the encoder sets further apart."""
        if told is None or one.contrast not in LIGHT or told.contrast not in HUES:
            return False
        is_far = self._distance(told) >= MIN_APART_ALONE
        return is_far and (one.place is None or self._outdoes(told, one))

    def _graded(self) -> Candidate | None:
        """Return a look of which members have more than the others, if the encoder says it too."""
        ranked = list(self._ranked())
        furthest = max(map(self._distance, ranked), default=0.0)
        return next(
            (
                one
                for one in ranked
                if one.is_graded and one.holds and self._distance(one) >= HALF_AS_FAR * furthest
            ),
            None,
        )

    def _backed(self) -> Candidate | None:
        """Return a word that encoder and witnesses agree on, of those that are nearly the encoder's best."""
        ranked = list(self._ranked())
        furthest = max(map(self._distance, ranked), default=0.0)
        found = [
            one
            for one in ranked
            if one.is_backed and one.holds and self._distance(one) >= NEARLY_AS_FAR * furthest
        ]
        first = _plainest([one for one in found if self._is_no_other_kind(one, ranked)])
        return self._writing(ranked) if first and first.contrast in WRITING else first

    def _is_no_other_kind(self, one: Candidate, ranked: Sequence[Candidate]) -> bool:
        """Return whether a kind of the class lies clearly ahead of every other that members could be; all else passes.

        Encoder and objects network are often mistaken in the same way, so that both see snakes in frogs. A word for
        all of the rivals together has none of them against it.
        """
        if one.slot != KIND:
            return True
        rivals = [
            two for two in ranked if two.slot == KIND and not are_near(one.contrast, two.contrast)
        ]
        is_apart = self._distance(one) >= MIN_APART
        return is_apart and all(self._outdoes(one, two) for two in rivals)

    def _told_by_the_encoder(self) -> Candidate | None:
        """Return a word that nobody but the encoder can tell, if it lies clearly ahead of all that mean something else."""
        ranked = list(self._ranked())
        sure = [one for one in ranked if one.may_stand_alone and one.holds]
        first = next(iter(sure), None)
        if first is None or self._distance(first) < MIN_APART_ALONE:
            return None
        rivals = [one for one in ranked if not are_near(first.contrast, one.contrast)]
        return first if all(self._outdoes(first, one) for one in rivals) else None

    def _writing(self, ranked: Sequence[Candidate]) -> Candidate | None:
        """Return the kind of writing if it is clearly one, and any text else."""
        own = [one for one in ranked if one.contrast in WRITING and one.is_backed and one.holds]
        if all(self._outdoes(own[0], one) for one in own[1:]):
            return own[0]
        return next((one for one in own if one.contrast == ANY_TEXT), own[0])

    def _distance(self, one: Candidate) -> float:
        is_asked = self.fits is not None and one.place is not None
        return float(self.fits.drawn[0][one.place]) if self.fits and is_asked else 0.0

    def _ranked(self) -> Iterator[Candidate]:
        """Yield the encoder's words that nobody denies, best first; backgrounds only if they are seen."""
        asked = [one for one in self.candidates if one.place is not None and not one.is_denied]
        for one in sorted(asked, key=self._distance, reverse=True):
            if one.is_backed or not one.is_background:
                yield one

    def _outdoes(self, one: Candidate, other: Candidate) -> bool:
        if self.fits is None or one.place is None or other.place is None or one is other:
            return False
        return self.fits.beats(one.place, other.place) >= OFTEN

    def _measured(self) -> Candidate | None:
        """Return what witnesses alone tell; not a kind, which they mistake as encoders do."""
        clear = [
            one for one in self.candidates if one.slot != KIND and one.is_clear and one.is_held
        ]
        clear = [
            one for one in clear if not any(says_more(two.contrast, one.contrast) for two in clear)
        ]
        return max(clear, key=lambda one: min(sight.auc for sight in one.sights), default=None)
