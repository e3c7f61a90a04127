"""When a run names: which slices are worth words, a second look with witnesses at what is confirmed, and words for both ends of a shift."""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from weakspot.core.arrays import DoubleArray, IntArray, unit_rows
from weakspot.core.assistants import MIN_AREA, MIN_TRUST, Assistants
from weakspot.core.dataset import Dataset, Split, Task, dataset_from_columns
from weakspot.core.errors import ModelError, UnavailableError
from weakspot.core.evidence import ClassFinding, ClassFindingKind, sides_of, sides_p
from weakspot.core.failures import FailureCriterion, Side, class_problems
from weakspot.core.roles import Describer
from weakspot.core.rules import LinearRule
from weakspot.core.run import RunRecord
from weakspot.core.samples import EmbeddingSpace, SampleSet
from weakspot.core.slices import DataUse, FailureSlice, SliceName
from weakspot.core.statistics import RankSum, q_values
from weakspot.run.halves import Halves, split_in_halves, withhold_from_halves
from weakspot.run.settings import Settings
from weakspot.run.wiring import build_describer
from weakspot.verify.classes import TwoSides, discriminant, shift_sentence, two_sides
from weakspot.words.caption_grammar import CaptionGrammarDescriber
from weakspot.words.captions import (
    Caption,
    ClassWords,
    built_in_vocabulary,
    plain_caption,
    single_additions,
)
from weakspot.words.meanings import ANY_TEXT, are_near, same_contrast, title_of
from weakspot.words.word_choice import (
    MEASURED,
    Candidate,
    Choice,
    Fits,
    Members,
    NameChecker,
    look,
    numbered,
)

MAX_NAMED = 10
"""Of one half. Words for a slice cost more than its proof, and of hundreds of candidates most are chance."""


def worth_naming(
    slices: Sequence[FailureSlice], samples: SampleSet, criterion: FailureCriterion
) -> tuple[FailureSlice, ...]:
    """Return all slices if they are few, else those with the smallest p-values on the samples that words are chosen on."""
    if len(slices) <= MAX_NAMED:
        return tuple(slices)
    problems = class_problems(samples.dataset, samples.rows, criterion)
    p_values = sides_p([sides_of(found, samples, problems) for found in slices])
    best = sorted(range(len(slices)), key=lambda place: (p_values[place], place))[:MAX_NAMED]
    return tuple(slices[place] for place in sorted(best))


def confirmed_without_words(record: RunRecord) -> frozenset[str]:
    """Return the ids of confirmed slices that were not among those worth naming before."""
    if len(record.slices) <= MAX_NAMED:
        return frozenset()
    return frozenset(found.slice_id for found, _ in record.published() if not found.names)


def describe_slices(
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
        halves or split_in_halves(samples, settings, criterion),
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


DESCRIBER = "witnesses"
SIZES = ("close-up", "far away")
COLOURS = ("red", "green", "yellow", "orange", "brown", "black", "white", "blue", "purple", "pink")
# A sketch is grey and light, and not all that is grey and light is a sketch: the encoder has to say so first.
SEEN_ALONE = tuple(word for word in MEASURED if word != "sketch")
MAX_LOOKED_AT = 16
N_POOL = 8
OUTDONE, DENIED = "other words fit better, or as well", "a second check does not agree"


def with_witnessed_names(
    record: RunRecord, settings: Settings, assistants: Assistants, pairs: Halves
) -> RunRecord:
    """Return a run whose confirmed slices are called by words that encoder and witnesses agree on, or by none.

    What a person, a column or a caption says of a slice stays.

    Args:
        record: a verified run.
        settings: of the project.
        assistants: witnesses, or a question answerer in their place; without any, nothing changes.
        pairs: halves of the samples.
    """
    describer = build_describer(settings)
    space = getattr(describer, "space", "clip")
    has_witness = assistants.seen is not None or assistants.answers is not None
    if not has_witness or not all(space in one.spaces for pair in pairs for one in pair):
        return record
    halves = halves_of_slices(record.slices, pairs)
    looks = {
        found.slice_id: SecondLook.at(found, halves[found.slice_id], describer, assistants)
        for found, _ in record.published()
        if found.slice_id in halves and (found.name is None or found.name.held is not None)
    }
    choices = {slice_id: one.choice() for slice_id, one in looks.items()}
    told = [one for choice in choices.values() for one in choice.candidates if one.held is not None]
    values = iter(q_values([one.held.p_value for one in told if one.held is not None]))
    judged = {slice_id: _corrected(choice, values) for slice_id, choice in choices.items()}
    slices = tuple(
        _called(found, judged[found.slice_id]) if found.slice_id in judged else found
        for found in record.slices
    )
    return record.model_copy(update={"slices": slices})


@dataclass(frozen=True, kw_only=True, eq=False)
class SecondLook:
    """Looks into the words for one slice.

    Args:
        found: the slice.
        pair: members and others of the samples that words are chosen on, and of those that only judge them.
        fits: how the encoder's words fit; None without a text side.
        areas: how well the text side told held-out images by each of them; None where nobody measured it.
        assistants: who is asked.
    """

    found: FailureSlice
    pair: tuple[Members, Members]
    fits: Fits | None
    areas: tuple[float | None, ...]
    assistants: Assistants

    @classmethod
    def at(
        cls,
        found: FailureSlice,
        halves: tuple[SampleSet, SampleSet],
        describer: object,
        assistants: Assistants,
    ) -> "SecondLook":
        """Return a look at a slice with the words of the describer."""
        space = getattr(describer, "space", "clip")
        pair = Members.of(found, halves[0], space), Members.of(found, halves[1], space)
        captions = list(_captions(found, describer, assistants))
        embed = assistants.embed_texts
        is_asked = embed is not None and captions and len(pair[0].rows) and len(pair[1].rows)
        fits = Fits.of(captions, _plain(found), pair, embed) if is_asked and embed else None
        areas = _areas(captions, assistants) if fits is not None else ()
        return cls(found=found, pair=pair, fits=fits, areas=areas, assistants=assistants)

    def choice(self) -> Choice:
        """Return the words to choose from: the encoder's best and looks by pixels; if none is sure, all that can be measured."""
        pool = {
            caption.contrast: self._candidate(caption, place) for place, caption in self._pool()
        }
        for caption in self._measurable(SEEN_ALONE):
            pool.setdefault(caption.contrast, self._candidate(caption, None))
        chosen = Choice(candidates=tuple(pool.values()), fits=self.fits)
        if chosen.title() is not None:
            return chosen
        for caption in self._measurable((*SIZES, *COLOURS, ANY_TEXT)):
            pool.setdefault(caption.contrast, self._candidate(caption, None))
        return Choice(candidates=tuple(pool.values()), fits=self.fits)

    def _pool(self) -> Iterator[tuple[int, Caption]]:
        """Yield the places of the encoder's best words, and of those that the slice has."""
        if self.fits is None:
            return
        named = {name.contrast for name in self.found.names}
        n_taken = 0
        for place in np.argsort(-self.fits.chosen, kind="stable").tolist():
            caption, area = self.fits.captions[place], self.areas[place]
            is_kind = caption.added[0][0] == "noun"
            may_say = is_kind if area is None else area >= MIN_AREA
            n_taken += may_say
            if (may_say and n_taken <= N_POOL) or caption.contrast in named:
                yield place, caption

    def _measurable(self, wanted: Sequence[str]) -> Iterator[Caption]:
        words = ClassWords(adjectives=COLOURS, places=(ANY_TEXT,))
        for caption in single_additions(_plain(self.found), words, built_in_vocabulary()):
            if caption.contrast in wanted:
                yield caption

    def _candidate(self, caption: Caption, place: int | None) -> Candidate:
        seen = [
            look(caption.contrast, members, self.assistants, most=MAX_LOOKED_AT)
            for members in self.pair
        ]
        sights = tuple(one for one in seen if one is not None)
        made = Candidate(
            caption=caption,
            place=place,
            area=None if place is None else self.areas[place],
            sights=sights if len(sights) == len(seen) else (),
            held=None if place is None or self.fits is None else self.fits.held(place),
            fits_found=0.0 if place is None or self.fits is None else self.fits.fits_found(place),
        )
        held = made.sights[1].held if made.is_clear or made.is_defining else made.held
        if held is None:
            return made
        # Before it is corrected for all words of the run.
        return replace(made, held=held.model_copy(update={"q_value": held.p_value}))


def _plain(found: FailureSlice) -> Caption:
    return plain_caption(found.class_name, is_absent=found.side is Side.ABSENT)


def _captions(found: FailureSlice, describer: object, assistants: Assistants) -> Iterator[Caption]:
    if isinstance(describer, CaptionGrammarDescriber):
        words = describer.words_for(found.class_name, found.side, assistants)
        yield from single_additions(_plain(found), words, built_in_vocabulary())


def _areas(captions: Sequence[Caption], assistants: Assistants) -> tuple[float | None, ...]:
    measured = assistants.measured
    areas = None if measured is None else measured([one.contrast for one in captions])
    if areas is None:
        return (1.0,) * len(captions)
    return tuple(float(one) if np.isfinite(one) else None for one in areas)


def _corrected(choice: Choice, values: Iterator[float]) -> Choice:
    """Return a choice whose words are judged among all words of the run."""
    candidates = tuple(
        one
        if one.held is None
        else replace(one, held=one.held.model_copy(update={"q_value": float(next(values))}))
        for one in choice.candidates
    )
    return replace(choice, candidates=candidates)


def _called(found: FailureSlice, choice: Choice) -> FailureSlice:
    """Return a slice with the chosen word as its title, and what is not sure behind it."""
    title = choice.title()
    denied = {one.contrast for one in choice.candidates if one.is_denied}
    others = [
        name
        if name.is_unsure or (title is not None and are_near(name.contrast, title.contrast))
        else name.model_copy(
            update={"is_unsure": True, "doubt": DENIED if name.contrast in denied else OUTDONE}
        )
        for name in found.names
        if title is None or not same_contrast(name.contrast, title.contrast)
    ]
    if title is None:
        return found.model_copy(update={"names": (*others,)})
    return found.model_copy(update={"names": (_named(found, title), *others)})


def _named(found: FailureSlice, title: Candidate) -> SliceName:
    """Return the word as a name; one that the slice has already is only called sure."""
    own = next((name for name in found.names if name.contrast == title.contrast), None)
    first, second = title.sights or (None, None)
    update: dict[str, object] = {"held": title.held, "is_unsure": False, "doubt": ""}
    if second is not None and title.is_backed:
        update["witness"] = "seen in the images"
        update["witness_score"] = round(second.members - second.others, 4)
    made = own or SliceName(
        phrase=title.caption.phrase,
        contrast=title.contrast,
        score=round(first.auc if first is not None else title.fits_found, 4),
        describer=DESCRIBER,
        title=title_of(title.caption, found.class_name),
        measured=title.area,
    )
    return made.model_copy(update=update)


MAX_WORDS = 1
N_EXAMPLES = 6
MIN_AUC = 0.85
MAX_P = 0.01
TOGETHER = ", "
BACKGROUND = " background"
MIN_SCORE = 2.5
"""In units of the spread over all captions tried; chosen on real photographs, where smaller scores were mostly wrong (decision 026)."""


@dataclass(frozen=True, kw_only=True, eq=False)
class ShiftNamer:
    """Names shifts. Predictions are not read, and no image of the confirmation half is shown.

    Args:
        samples: all samples.
        space: the embeddings that are shared with text.
        shown: rows of evaluation samples that may be shown: the discovery half.
        kept: rows of the others, on which words are only checked.
        describer: the describe stage's own; it names evaluation images as if they were the slice, training images as the other end.
        assistants: who can be asked for words.
    """

    samples: SampleSet
    space: str
    shown: IntArray
    kept: IntArray
    describer: Describer
    assistants: Assistants

    def named(self, findings: Sequence[ClassFinding]) -> tuple[ClassFinding, ...]:
        """Return findings, the first few confirmed shifts among them with examples, and with words where words are known to fit."""
        shifts = [
            one for one in findings if one.kind is ClassFindingKind.SHIFT and one.is_confirmed
        ]
        told = {one.finding_id: self._named(one) for one in shifts[:MAX_NAMED]}
        return tuple(told.get(one.finding_id, one) for one in findings)

    def _named(self, finding: ClassFinding) -> ClassFinding:
        dataset = self.samples.dataset
        code = dataset.class_code(finding.class_name)
        training = _class_rows(dataset, dataset.rows_of(Split.TRAIN), code)
        sides = two_sides(
            self.samples, self.space, _class_rows(dataset, self.shown, code), training, least=2
        )
        if sides is None:
            return finding
        direction = discriminant(sides.embeddings, sides.is_here)
        depth = sides.embeddings @ direction
        here, there = self._words(finding, code, training)
        sentence = finding.sentence
        if here or there:
            plain = shift_sentence(finding.class_name, finding.rate)
            worded = shift_sentence(finding.class_name, finding.rate, here=here, there=there)
            sentence = sentence.replace(plain, worded)
        return finding.model_copy(
            update={
                "words_here": here,
                "words_there": there,
                "sentence": sentence,
                "examples_here": self._examples(sides, depth, is_here=True),
                "examples_there": self._examples(sides, -depth, is_here=False),
            }
        )

    def _examples(self, sides: TwoSides, depth: DoubleArray, *, is_here: bool) -> tuple[str, ...]:
        places = np.flatnonzero(sides.is_here == is_here)
        deepest = places[np.argsort(-depth[places], kind="stable")][:N_EXAMPLES]
        return tuple(self.samples.dataset.sample_ids(sides.rows[deepest]))

    def _words(
        self, finding: ClassFinding, code: int, training: IntArray
    ) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Return words of both ends that are chosen on one half of the images and tell the sides of the other half apart."""
        embed_texts = self.assistants.embed_texts
        if embed_texts is None or not self.samples.space(self.space).has_text:
            return (), ()
        dataset = self.samples.dataset
        chosen, checked = (
            two_sides(self.samples, self.space, here, there, least=5)
            for here, there in (
                (_class_rows(dataset, self.shown, code), training[::2]),
                (_class_rows(dataset, self.kept, code), training[1::2]),
            )
        )
        if chosen is None or checked is None:
            return (), ()
        try:
            named = self._described(finding.class_name, chosen)
        except (ModelError, UnavailableError):
            return (), ()
        caption = plain_caption(finding.class_name)
        plain, noun = caption.phrase, caption.noun or finding.class_name

        def fits(name: SliceName, sign: int) -> bool:
            texts = unit_rows(np.asarray(embed_texts([name.phrase, plain]), dtype=np.float32))
            depth = sign * (checked.embeddings @ (texts[0] - texts[1]))
            found = RankSum.of(depth, checked.is_here)
            return found.auc >= MIN_AUC and found.p_value <= MAX_P

        def sayable(name: SliceName) -> bool:
            says = self.assistants.says
            told = None if says is None else says([name.contrast])
            return told is None or told[0] >= MIN_TRUST or (name.witness_score or 0.0) > 0

        return (
            _trusted([one for one in named.names if sayable(one) and fits(one, 1)], noun),
            _trusted([one for one in named.easy_names if sayable(one) and fits(one, -1)], noun),
        )

    def _described(self, class_name: str, sides: TwoSides) -> FailureSlice:
        """Return what the describe stage calls the evaluated side, as if its images had failed and training images had not."""
        rows, space = sides.rows, self.samples.space(self.space)
        dataset = dataset_from_columns(
            class_names=(class_name, ""),
            labels=np.zeros(len(rows), dtype=np.int64),
            predictions=sides.is_here.astype(np.int64),
            sample_ids=self.samples.dataset.sample_ids(rows),
            metadata={
                name: self.samples.dataset.metadata(name).take(rows).to_pylist()
                for name in self.samples.dataset.metadata_names
            },
        )
        spaces = {
            name: EmbeddingSpace(
                encoder_id=one.encoder_id, embeddings=one.embeddings[rows], has_text=one.has_text
            )
            for name, one in self.samples.spaces.items()
        }
        pseudo = SampleSet(dataset=dataset, rows=np.arange(len(rows)), spaces=spaces, name="shift")
        direction = discriminant(sides.embeddings, sides.is_here)
        depth = sides.embeddings @ direction
        middle = (depth[sides.is_here].mean() + depth[~sides.is_here].mean()) / 2
        found = FailureSlice(
            class_name=class_name,
            rule=LinearRule(
                space=self.space,
                encoder_id=space.encoder_id,
                direction=tuple(direction.tolist()),
                threshold=float(middle),
            ),
            method="shift",
            found_on=DataUse.of(pseudo),
        )
        (named,) = self.describer.describe(
            (found,), pseudo, FailureCriterion(), self._assistants_for(rows)
        )
        return named

    def _assistants_for(self, rows: IntArray) -> Assistants:
        """Return the assistants as they answer about some rows, numbered from 0 on."""
        captions, answers = self.assistants.captions, self.assistants.answers
        return replace(
            self.assistants,
            captions=None if captions is None else lambda places: captions(rows[places]),
            answers=None
            if answers is None
            else lambda places, question: answers(rows[places], question),
        )


def _trusted(names: Sequence[SliceName], noun: str) -> tuple[str, ...]:
    """Return the words of names that nobody who was asked doubts, and that have a witness or need none, best first.

    Of several things said together only the whole was checked, so one of them may be wrong: such names are left out.
    """
    kept = [
        one.contrast
        for one in names
        if not one.is_doubtful
        and not one.is_untrue
        and TOGETHER not in one.contrast
        and ((one.witness_score or 0.0) > 0 or _needs_no_witness(one, noun))
    ]
    return tuple(dict.fromkeys(kept))[:MAX_WORDS]


def _needs_no_witness(name: SliceName, noun: str) -> bool:
    """Return whether words stand out and are of those that embeddings alone tell.

    The embedding of a whole image does not tell the colour of a background from that of the object, nor one kind of the class from
    its relatives.
    """
    is_kind = noun not in name.phrase
    return name.score >= MIN_SCORE and not is_kind and not name.contrast.endswith(BACKGROUND)


def _class_rows(dataset: Dataset, rows: IntArray, code: int) -> IntArray:
    labelled = rows[dataset.is_labelled[rows]]
    is_single = dataset.task is Task.SINGLE_LABEL
    chosen = dataset.labels[labelled] == code if is_single else dataset.label_matrix[labelled, code]
    return np.asarray(labelled[chosen], dtype=np.int64)
