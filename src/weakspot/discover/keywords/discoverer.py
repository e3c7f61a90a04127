"""The discoverer: candidates of every class, scored together, the good ones turned into slices."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace

import numpy as np
from pydantic import JsonValue

from weakspot.core.arrays import BoolArray, FloatArray, IntArray, unit_rows
from weakspot.core.assistants import NOBODY, Assistants, EmbedTexts, TrustPhrases
from weakspot.core.bounds import Count, NonNegativeInt, PositiveFraction, check_bounds
from weakspot.core.class_embeddings import obstacle, with_embeddings
from weakspot.core.failures import ClassProblem, FailureCriterion, class_problems
from weakspot.core.needs import Need
from weakspot.core.roles import Discovery
from weakspot.core.rules import LinearRule
from weakspot.core.run import ClassNote
from weakspot.core.samples import SampleSet
from weakspot.core.seeding import generator
from weakspot.core.slices import DataUse, FailureSlice, SliceName
from weakspot.core.statistics import overlap
from weakspot.discover.keywords.candidates import (
    Candidate,
    Captions,
    caption_candidates,
    read_captions,
    vocabulary_candidates,
)
from weakspot.discover.keywords.scoring import (
    CaptionContrast,
    Suggestion,
    association,
    caption_contrast,
    scored,
)
from weakspot.discover.keywords.wording import (
    nothing_good,
    seen_by_captions_only,
    without_text_side,
)

METHOD = "keywords"
WITNESS = "captions"
VOCABULARY_USED = "There are no captions of failures and of other samples, so the words of the built-in vocabulary were tried."


@dataclass(frozen=True, kw_only=True, eq=False)
class _ClassWords:
    """One class with its candidates.

    Args:
        problem: its samples that have an embedding, by sample id.
        embeddings: their unit vectors [n, d].
        candidates: keywords to score.
        has_caption: which samples have a caption [n].
        notes: what to know.
    """

    problem: ClassProblem
    embeddings: FloatArray
    candidates: tuple[Candidate, ...]
    has_caption: BoolArray
    notes: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class KeywordsDiscoverer:
    """Finds keywords that mark failures in captions and in the embeddings, and makes a slice of each.

    After Kim, Mo, Kim, Lee, Lee and Shin, *Discovering and Mitigating Visual Biases through Keyword Explanation* (2024), and the
    suggestions of Lee and others, *Clarify* (2024).

    Args:
        space: which embeddings are read.
        caption_column: metadata column that holds captions; if there is none, a captioner is asked.
        max_captioned: at most so many samples of a class get a caption, half of them failures if there are so many.
        max_words: longest keyword.
        min_captions: fewest captions that contain a keyword.
        max_candidates: at most so many keywords are scored per class, the most frequent ones.
        n_keywords: at most so many slices per class.
        max_overlap: of two keywords whose members overlap more (intersection over union) only the better one is kept; nor is one
            kept that only adds words to a better one.
        max_p: keywords whose Error Score shuffled predictions reach more often are not reported.
        n_permutations: how often predictions are shuffled; 0 for never, then every positive score counts.
        min_failures: classes with fewer failures are passed over.
        min_right: classes with fewer samples that did not fail are passed over.

    >>> from weakspot.testing.examples import ASSISTANTS, CRITERION, discovery_samples
    >>> found = KeywordsDiscoverer(n_permutations=50).discover(discovery_samples(), CRITERION, seed=0, assistants=ASSISTANTS)
    >>> found.slices[0].title, found.slices[0].n_found
    ('disc: green', 16)
    """

    space: str = "clip"
    caption_column: str = "caption"
    max_captioned: Count = 2000
    max_words: Count = 3
    min_captions: Count = 5
    max_candidates: Count = 300
    n_keywords: Count = 10
    max_overlap: PositiveFraction = 0.7
    max_p: PositiveFraction = 0.05
    n_permutations: NonNegativeInt = 500
    min_failures: Count = 2
    min_right: Count = 2

    def __post_init__(self) -> None:
        check_bounds(self)

    @property
    def is_baseline(self) -> bool:
        return False

    @property
    def is_explaining(self) -> bool:
        return True

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
        embed = _text_side(assistants, self.space)
        slices: list[FailureSlice] = []
        notes: list[ClassNote] = []
        use = DataUse.of(samples)
        n_considered = 0
        every = self._class_words(samples, criterion, seed=seed, assistants=assistants)
        embeddings = _prompt_embeddings(every, embed)
        for words in every:
            said = list(words.notes)
            if words.candidates and embed is None:
                said.append(without_text_side(self.space, _contrasts(words), largest_p=self.max_p))
            elif words.candidates:
                suggested = self._score(words, embeddings, seed=seed)
                found = self._slices(samples, words, suggested, embeddings, use)
                n_considered += len(suggested)
                slices += found
                unseen = [one for one in suggested if not self._is_good(one)]
                said += seen_by_captions_only(unseen, largest_p=self.max_p / len(suggested))
                said += [] if found else [nothing_good(suggested, words.problem.n_failed)]
            notes += [ClassNote(class_name=words.problem.title, note=note) for note in said]
        return Discovery(slices=tuple(slices), notes=tuple(notes), n_considered=n_considered)

    def _class_words(
        self,
        samples: SampleSet,
        criterion: FailureCriterion,
        *,
        seed: int,
        assistants: Assistants,
    ) -> list[_ClassWords]:
        known: list[tuple[ClassProblem, FloatArray, str]] = []
        for problem in class_problems(samples.dataset, samples.rows, criterion):
            kept, raw = with_embeddings(samples, problem, self.space)
            n_without = len(problem.rows) - len(kept.rows)
            note = obstacle(
                kept,
                min_failures=self.min_failures,
                min_right=self.min_right,
                n_without=n_without,
            )
            known.append((kept, unit_rows(raw), note))
        wanted = [
            self._captioned_rows(problem, seed=seed) for problem, _, note in known if not note
        ]
        captions = read_captions(
            samples, wanted, column=self.caption_column, ask=assistants.captions
        )
        return [
            self._with_candidates(problem, embeddings, captions, note, assistants.says)
            for problem, embeddings, note in known
        ]

    def _captioned_rows(self, problem: ClassProblem, *, seed: int) -> IntArray:
        if len(problem.rows) <= self.max_captioned:
            return problem.rows
        draws = generator(seed, METHOD, "captioned", problem.title)
        failures, others = (
            draws.permutation(problem.rows[problem.failed == side]) for side in (True, False)
        )
        half = self.max_captioned // 2
        n_failures = max(min(half, len(failures)), self.max_captioned - len(others))
        return np.concatenate([failures[:n_failures], others[: self.max_captioned - n_failures]])

    def _with_candidates(
        self,
        problem: ClassProblem,
        embeddings: FloatArray,
        captions: Captions,
        note: str,
        says: TrustPhrases | None,
    ) -> _ClassWords:
        texts = captions.of(problem.rows)
        has_caption = np.array([bool(text) for text in texts], dtype=np.bool_)
        plain = _ClassWords(
            problem=problem,
            embeddings=embeddings,
            candidates=(),
            has_caption=has_caption,
            notes=(note,),
        )
        if note:
            return plain
        if np.any(has_caption & problem.failed) and np.any(has_caption & ~problem.failed):
            found = caption_candidates(
                texts,
                problem,
                max_words=self.max_words,
                min_captions=self.min_captions,
                most=self.max_candidates,
            )
            if found:
                return replace(plain, candidates=found, notes=())
        said = f"{VOCABULARY_USED} {captions.problem}".strip()
        return replace(plain, candidates=vocabulary_candidates(says), notes=(said,))

    def _score(
        self, words: _ClassWords, embeddings: dict[str, FloatArray], *, seed: int
    ) -> tuple[Suggestion, ...]:
        return scored(
            words.candidates,
            np.stack([embeddings[candidate.prompt] for candidate in words.candidates])
            @ words.embeddings.T,
            words.problem.failed,
            words.has_caption,
            n_permutations=self.n_permutations,
            draws=generator(seed, METHOD, words.problem.title),
            groups=words.problem.groups,
        )

    def _slices(
        self,
        samples: SampleSet,
        words: _ClassWords,
        suggested: Sequence[Suggestion],
        embeddings: dict[str, FloatArray],
        use: DataUse,
    ) -> list[FailureSlice]:
        containing = {candidate.keyword: candidate.containing for candidate in words.candidates}
        kept: dict[str, BoolArray] = {}
        slices: list[FailureSlice] = []
        for found in sorted(filter(self._is_good, suggested), key=_rank):
            rule = LinearRule(
                space=self.space,
                encoder_id=samples.space(self.space).encoder_id,
                direction=tuple(embeddings[found.prompt].tolist()),
                threshold=found.threshold,
            )
            inside = rule.members(samples, words.problem.rows)
            is_old = any(
                _says_more(found.keyword, other) or overlap(inside, members) > self.max_overlap
                for other, members in kept.items()
            )
            if inside.any() and not is_old and len(slices) < self.n_keywords:
                kept[found.keyword] = inside
                said = containing[found.keyword]
                agreement = (
                    None
                    if said is None
                    else association(said[words.has_caption], inside[words.has_caption])
                )
                told = inside & words.has_caption
                n_true = None if said is None else int((said & told).sum())
                new = self._slice(words.problem, found, rule, inside, agreement, use)
                slices.append(_with_true_words(new, n_true, int(told.sum())))
        return slices

    def _is_good(self, found: Suggestion) -> bool:
        """Return whether both witnesses point at failures, and one of them clearly."""
        if found.error_score <= 0 or found.clip_score <= 0:
            return False
        if found.captions is not None and found.captions.p_value <= self.max_p:
            return True
        # Where captions do not support a keyword, the embeddings must do so among all keywords together.
        chance = found.p_value if found.captions is None else found.family_p
        return chance is None or chance <= self.max_p

    def _slice(
        self,
        problem: ClassProblem,
        found: Suggestion,
        rule: LinearRule,
        inside: BoolArray,
        agreement: float | None,
        use: DataUse,
    ) -> FailureSlice:
        contrast = found.captions
        parameters: dict[str, JsonValue] = {
            **asdict(self),
            "keyword": found.keyword,
            "clip_score": found.clip_score,
        }
        if contrast is not None:
            parameters |= {
                "caption_agreement": agreement,
                **{f"caption_{key}": value for key, value in asdict(contrast).items()},
            }
        name = SliceName(
            phrase=found.prompt,
            contrast=found.keyword,
            score=found.error_score,
            describer=METHOD,
            witness="" if contrast is None else WITNESS,
            witness_score=None if contrast is None else contrast.association,
            is_doubtful=contrast is not None
            and (contrast.association <= 0 or (agreement or 0.0) <= 0),
        )
        return FailureSlice(
            class_name=problem.class_name,
            side=problem.side,
            rule=rule,
            method=METHOD,
            parameters=parameters,
            found_on=use,
            strength=found.error_score,
            strength_p=found.family_p,
            n_found=int(inside.sum()),
            names=(name,),
        )


def _with_true_words(found: FailureSlice, n_true: int | None, n_told: int) -> FailureSlice:
    """State of how many members the keyword is said; if not of half, the slice is what lies near to it, and says so."""
    name = found.names[0].model_copy(update={"n_true": n_true, "n_told": n_told})
    if name.is_untrue:
        nearness = {"contrast": f"near to “{name.contrast}”", "n_true": None, "n_told": 0}
        name = name.model_copy(update={**nearness, "is_doubtful": True})
    return found.model_copy(update={"names": (name,)})


def _rank(found: Suggestion) -> tuple[float, float, int, str]:
    """Return what keywords are sorted by: contrast between captions if there are any, Error Score, then brevity."""
    contrast = 0.0 if found.captions is None else found.captions.log_odds
    return (
        -round(contrast, 6),
        -round(found.error_score, 6),
        len(found.keyword.split()),
        found.keyword,
    )


def _contrasts(words: _ClassWords) -> dict[str, CaptionContrast]:
    return {
        candidate.keyword: caption_contrast(
            candidate.containing, words.has_caption, words.problem.failed, words.problem.groups
        )
        for candidate in words.candidates
        if candidate.containing is not None
    }


def _says_more(keyword: str, other: str) -> bool:
    """Return whether a keyword only narrows another, as `small green` does `green`."""
    return set(other.split()) < set(keyword.split())


def _prompt_embeddings(
    every: Sequence[_ClassWords], embed: EmbedTexts | None
) -> dict[str, FloatArray]:
    prompts = sorted({candidate.prompt for words in every for candidate in words.candidates})
    if embed is None or not prompts:
        return {}
    return dict(zip(prompts, unit_rows(np.asarray(embed(prompts), dtype=np.float32)), strict=True))


def _text_side(assistants: Assistants, space: str) -> EmbedTexts | None:
    if assistants.second is not None and assistants.second.space == space:
        return assistants.second.embed_texts
    return assistants.embed_texts if space == "clip" else None
