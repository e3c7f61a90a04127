"""The discoverer: values that most seed failures of a class show, turned into slices."""

from dataclasses import asdict, dataclass
from typing import Annotated

import numpy as np
from pydantic import JsonValue

from weakspot.core.arrays import unit_rows
from weakspot.core.assistants import NOBODY, Assistants, EmbedTexts
from weakspot.core.bounds import Bounds, Count, check_bounds
from weakspot.core.class_embeddings import obstacle, with_embeddings
from weakspot.core.failures import ClassProblem, FailureCriterion, Side, class_problems
from weakspot.core.needs import Need
from weakspot.core.record import PackedArray
from weakspot.core.roles import Discovery
from weakspot.core.rules import NearestRule
from weakspot.core.run import ClassNote
from weakspot.core.samples import SampleSet
from weakspot.core.seeding import generator
from weakspot.core.slices import DataUse, FailureSlice, SliceName
from weakspot.discover.uncommon_attributes.search import Proposer, Search, searched, seed_failures
from weakspot.lexicon.captions import Caption, plain_caption
from weakspot.lexicon.uncommon_vocabulary import Axis, uncommon_axes

METHOD = "uncommon-attributes"
MOST_BUILT_IN = 32


@dataclass(frozen=True, kw_only=True)
class UncommonAttributesDiscoverer:
    """Finds the uncommon attributes that most failures of a class show, and makes a slice of each.

    After *Identifying and Mitigating Model Failures through Few-shot CLIP-aided Diffusion Generation* (2024).

    Args:
        axes: kinds of attribute, in the order they are looked at: background, colour, size, pose, viewpoint, lighting, company,
            material, look.
        n_values: how many values a language model is asked for, per class and axis.
        top_k: at most so many values per class and axis become slices.
        held_out_share: share of the failures that take no part in choosing values, and tell whether the choice holds.
        min_seeds: fewest failures that must show a value for it to be chosen.
        centre: whether each caption's usual similarity to samples of the class is subtracted first.
        space: which embeddings are read.
        min_failures: classes with fewer failures are passed over.
        min_right: classes with fewer samples that did not fail are passed over.
        values: pairs of a kind of attribute and its values; no language model is asked for these, and no built-in ones are taken.

    >>> from weakspot.testing.examples import ASSISTANTS, CRITERION, discovery_samples
    >>> method = UncommonAttributesDiscoverer(axes=("colour",))
    >>> found = method.discover(discovery_samples(), CRITERION, seed=0, assistants=ASSISTANTS)
    >>> found.slices[0].title, found.slices[0].n_found
    ('disc: green', 13)
    """

    axes: tuple[str, ...] = ("background",)
    n_values: Count = 10
    top_k: Count = 3
    held_out_share: Annotated[float, Bounds(ge=0, lt=1)] = 0.5
    min_seeds: Count = 2
    centre: bool = False
    space: str = "clip"
    min_failures: Count = 2
    min_right: Count = 1
    values: tuple[tuple[str, tuple[str, ...]], ...] = ()

    def __post_init__(self) -> None:
        unknown = sorted(set(self.axes) - set(uncommon_axes()))
        fits = self.axes and not unknown
        problem = f"The setting axes must name kinds of attribute, not {unknown}; choose from {list(uncommon_axes())}."
        check_bounds(self, problems=[] if fits else [problem])

    @property
    def is_baseline(self) -> bool:
        return False

    @property
    def needs(self) -> tuple[Need, ...]:
        return (Need.EMBEDDINGS,)

    def discover(
        self,
        samples: SampleSet,
        criterion: FailureCriterion,
        *,
        seed: int,
        assistants: Assistants = NOBODY,
    ) -> Discovery:
        """Return slices of the values that most seed failures show, class by class, and a note for every class without."""
        embed = _text_side(assistants, self.space)
        proposer = Proposer(propose=assistants.propose, n_values=self.n_values)
        slices: list[FailureSlice] = []
        notes: list[ClassNote] = []
        use = DataUse.of(samples)
        n_considered = 0
        for problem in class_problems(samples.dataset, samples.rows, criterion):
            known, raw = with_embeddings(samples, problem, self.space)
            n_without = len(problem.rows) - len(known.rows)
            said = [
                obstacle(
                    known,
                    min_failures=self.min_failures,
                    min_right=self.min_right,
                    n_without=n_without,
                )
            ]
            if embed is None:
                said = [
                    f"The embeddings called {self.space!r} have no text side, so attributes cannot be compared with samples."
                ]
            if embed is None or said[0]:
                notes.append(ClassNote(class_name=problem.title, note=said[0]))
                continue
            for name in self.axes:
                axis = uncommon_axes()[name]
                captions, note = self._captions(known, axis, proposer)
                draws = generator(seed, METHOD, axis.name, problem.title)
                seeds = seed_failures(samples.dataset, known, 1.0 - self.held_out_share, draws)
                search = searched(
                    known, unit_rows(raw), axis, captions, embed, centre=self.centre, seeds=seeds
                )
                found = self._slices(samples, search, use)
                n_considered += search.n_values
                slices += found
                said = [*note, *([] if found else [search.nothing_found()])]
                notes += [ClassNote(class_name=problem.title, note=one) for one in said]
        return Discovery(slices=tuple(slices), notes=tuple(notes), n_considered=n_considered)

    def _captions(
        self, problem: ClassProblem, axis: Axis, proposer: Proposer
    ) -> tuple[tuple[Caption, ...], list[str]]:
        """Return the captions of values, the plain one last, and a note if the language model was of no use."""
        is_absent = problem.side is Side.ABSENT
        plain = plain_caption(problem.class_name, is_absent=is_absent)
        given = dict(self.values).get(axis.name, ())
        values = given or (() if is_absent else proposer.values(problem.class_name, axis))
        note: list[str] = []
        if not values:
            values = axis.values_for(None if is_absent else problem.class_name, most=MOST_BUILT_IN)
            if proposer.propose is not None and not is_absent:
                note = [
                    f"The language model could not be used, so built-in values of {axis.name!r} were tried. {proposer.last}"
                ]
        return (*(axis.caption(plain.noun, value) for value in values), plain), note

    def _slices(self, samples: SampleSet, search: Search, use: DataUse) -> list[FailureSlice]:
        n_values = search.n_values
        counts = np.bincount(search.nearest[search.seeds], minlength=n_values + 1)[:n_values]
        order = sorted(range(n_values), key=lambda place: (-counts[place], place))
        chosen = [place for place in order[: self.top_k] if counts[place] >= self.min_seeds]
        share = (
            float(np.isin(search.nearest[search.held_out], chosen).mean())
            if search.held_out.any()
            else None
        )
        return [self._slice(samples, search, place, share, use) for place in chosen]

    def _slice(
        self,
        samples: SampleSet,
        search: Search,
        place: int,
        held_out_share: float | None,
        use: DataUse,
    ) -> FailureSlice:
        problem, shows = search.problem, search.nearest == place
        rule = NearestRule(
            space=self.space,
            encoder_id=samples.space(self.space).encoder_id,
            prototypes=PackedArray.of(search.prototypes),
            chosen=place,
            offsets=search.offsets,
        )
        n_seed, n_held_out = int(search.seeds.sum()), int(search.held_out.sum())
        shown_by_seeds, shown_by_held_out = (
            int((shows & search.seeds).sum()),
            int((shows & search.held_out).sum()),
        )
        caption = search.captions[place]
        parameters: dict[str, JsonValue] = {
            **asdict(self),
            "axes": list(self.axes),
            "values_given": {name: list(own) for name, own in self.values},
            "axis": search.axis.name,
            "value": caption.contrast,
            "values": [one.contrast for one in search.captions[:-1]],
            "n_seed": n_seed,
            "n_heldout": n_held_out,
            "n_seed_shown": shown_by_seeds,
            "n_heldout_shown": shown_by_held_out,
            "heldout_share_of_top": held_out_share,
        }
        strength = shown_by_seeds / n_seed
        return FailureSlice(
            class_name=problem.class_name,
            side=problem.side,
            rule=rule,
            method=METHOD,
            parameters=parameters,
            found_on=use,
            strength=strength,
            # Held-out failures against samples that did not fail: neither had a say in choosing the value.
            strength_p=search.chance(place),
            n_found=int(rule.members(samples, problem.rows).sum()),
            names=(
                SliceName(
                    phrase=caption.phrase,
                    contrast=caption.contrast,
                    score=strength,
                    describer=METHOD,
                ),
            ),
        )


def _text_side(assistants: Assistants, space: str) -> EmbedTexts | None:
    if assistants.second is not None and assistants.second.space == space:
        return assistants.second.embed_texts
    return assistants.embed_texts if space == "clip" else None
