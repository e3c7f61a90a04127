"""A second look at confirmed slices: encoder and witnesses together say which word a slice may be called by, or that none is sure.

The encoder ranks words; witnesses (light and looks by pixels, text that was read, colour and size of the object, objects and places)
back or deny them (decision 032). Only confirmed slices are looked at, and no prediction of the confirmation half is read.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from weakspot.core.assistants import LEAST_AREA, Assistants
from weakspot.core.failures import Side
from weakspot.core.run import RunRecord
from weakspot.core.samples import SampleSet
from weakspot.core.slices import FailureSlice, SliceName
from weakspot.core.statistics import q_values
from weakspot.describe.caption_grammar import CaptionGrammarDescriber
from weakspot.lexicon.captions import Caption, plain_caption, single_additions
from weakspot.lexicon.matching import same_contrast
from weakspot.lexicon.meanings import ANY_TEXT, are_near
from weakspot.lexicon.titles import title_of
from weakspot.lexicon.vocabulary import ClassWords, built_in_vocabulary
from weakspot.pipeline.halves import Halves
from weakspot.pipeline.name_checks import Members
from weakspot.pipeline.naming import halves_of_slices
from weakspot.pipeline.settings import Settings
from weakspot.pipeline.wiring import build_describer
from weakspot.pipeline.word_choice import Candidate, Choice
from weakspot.pipeline.word_evidence import MEASURED, Fits, look

DESCRIBER = "witnesses"
SIZES = ("close-up", "far away")
COLOURS = ("red", "green", "yellow", "orange", "brown", "black", "white", "blue", "purple", "pink")
# A sketch is grey and light, and not all that is grey and light is a sketch: the encoder has to say so first.
SEEN_ALONE = tuple(word for word in MEASURED if word != "sketch")
MOST_LOOKED_AT = 16
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
            may_say = is_kind if area is None else area >= LEAST_AREA
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
            look(caption.contrast, members, self.assistants, most=MOST_LOOKED_AT)
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
