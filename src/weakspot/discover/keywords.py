"""Keywords that captions of failures say and captions of other samples do not, put to the embeddings as a second witness.

After Kim, Mo, Kim, Lee, Lee and Shin, *Discovering and Mitigating Visual Biases through Keyword Explanation* (Bias-to-Text, 2024),
and the suggestions of Lee and others, *Clarify* (2024). `docs/reference/methods.md` says where this departs from them and why.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace

import numpy as np
import pyarrow as pa
from pydantic import JsonValue

from weakspot.core.arrays import BoolArray, FloatArray, IntArray, generator, unit_rows
from weakspot.core.assistants import (
    MIN_TRUST,
    NO_ASSISTANTS,
    Assistants,
    CaptionRows,
    EmbedTexts,
    TrustPhrases,
)
from weakspot.core.bounds import Count, NonNegativeInt, PositiveFraction, check_bounds
from weakspot.core.errors import WeakspotError
from weakspot.core.failures import ClassProblem, FailureCriterion, class_problems
from weakspot.core.group_tests import group_p
from weakspot.core.roles import Discovery
from weakspot.core.rules import LinearRule
from weakspot.core.run import ClassNote
from weakspot.core.samples import Need, SampleSet, obstacle, with_embeddings
from weakspot.core.slices import DataUse, FailureSlice, SliceName
from weakspot.core.statistics import overlap
from weakspot.discover.error_score import error_score_null, error_scores
from weakspot.words.caption_words import STOP_WORDS, keywords_in
from weakspot.words.captions import Caption, built_in_vocabulary, counted, noun_of
from weakspot.words.wordnet import everyday_lemma, is_known


@dataclass(frozen=True, kw_only=True, eq=False)
class Captions:
    """What is known.

    Args:
        by_row: captions by row of the data set; rows without one are missing.
        problem: why there are none, or an empty text.
    """

    by_row: Mapping[int, str] = field(default_factory=dict)
    problem: str = ""

    def of(self, rows: IntArray) -> list[str]:
        return [self.by_row.get(int(row), "") for row in rows]


def read_captions(
    samples: SampleSet, wanted: Sequence[IntArray], *, column: str, ask: CaptionRows | None
) -> Captions:
    """Return the captions of the wanted rows: from the column if it holds any, else from whoever can be asked.

    Args:
        samples: where the rows are.
        wanted: rows, class by class; a row may be wanted more than once and is asked for once.
        column: metadata column.
        ask: rows to captions, or None.
    """
    rows = np.unique(np.concatenate([np.zeros(0, dtype=np.int64), *wanted]))
    given = _from_column(samples, rows, column)
    if given or ask is None or not len(rows):
        return Captions(by_row=given)
    try:
        answers = ask(rows)
    except WeakspotError as error:
        return Captions(problem=f"The captioner could not be asked: {error}")
    if len(answers) != len(rows):
        return Captions(
            problem=f"The captioner gave {len(answers)} captions for {len(rows)} samples."
        )
    return Captions(by_row=_speak(rows, answers))


def _from_column(samples: SampleSet, rows: IntArray, column: str) -> dict[int, str]:
    if column not in samples.dataset.metadata_names:
        return {}
    return _speak(rows, samples.dataset.metadata(column).take(pa.array(rows)).to_pylist())


def _speak(rows: IntArray, texts: Sequence[object]) -> dict[int, str]:
    return {
        int(row): text.strip()
        for row, text in zip(rows, texts, strict=True)
        if isinstance(text, str) and text.strip()
    }


@dataclass(frozen=True, kw_only=True, eq=False)
class Candidate:
    """A phrase that may say what failures have in common.

    Args:
        keyword: as shown to people.
        prompt: what is put to the encoder.
        containing: which samples' captions contain it [n], or None without captions.
    """

    keyword: str
    prompt: str
    containing: BoolArray | None = None


def caption_candidates(
    captions: Sequence[str], problem: ClassProblem, *, max_words: int, min_captions: int, most: int
) -> tuple[Candidate, ...]:
    """Return what enough captions say, most frequent first.

    Predictions play no part in who becomes a candidate, so that a null over the candidates holds. What every caption says, and the
    words of the class itself, tell nothing.

    Args:
        captions: one a sample of the problem; empty where there is none.
        problem: the class.
        max_words: longest phrase.
        min_captions: fewest captions that contain it.
        most: how many at most.
    """
    own = frozenset(everyday_lemma(word) for word in noun_of(problem.class_name).lower().split())
    stops = STOP_WORDS | (own if problem.side is None or problem.side == "present" else frozenset())
    found = [keywords_in(caption, max_words=max_words, stops=stops) for caption in captions]
    counts = Counter(keyword for keywords in found for keyword in keywords)
    n_captions = sum(bool(caption.strip()) for caption in captions)
    frequent = [keyword for keyword, count in counts.items() if min_captions <= count < n_captions]
    chosen = sorted(frequent, key=lambda keyword: (-counts[keyword], keyword))[:most]
    return tuple(
        Candidate(
            keyword=keyword,
            prompt=prompt_for(keyword),
            containing=np.array([keyword in keywords for keywords in found], dtype=np.bool_),
        )
        for keyword in chosen
    )


def prompt_for(keyword: str) -> str:
    """Return the sentence that is put to the encoder; the class is left out of it, so that only the keyword can speak.

    >>> [prompt_for(keyword) for keyword in ("grassy background", "green", "water", "orange fruit")]
    ['a photo of a grassy background', 'a photo of a green thing', 'a photo of water', 'a photo of an orange fruit']
    """
    last = keyword.rsplit(" ", maxsplit=1)[-1]
    if last in built_in_vocabulary().adjectives or (
        is_known(last, "adj") and not is_known(last, "noun")
    ):
        return Caption(noun=None, adjective=keyword).phrase
    return f"a photo of {counted(keyword, keyword)}"


def vocabulary_candidates(says: TrustPhrases | None = None) -> tuple[Candidate, ...]:
    """Return the built-in words, without those that the text side was not seen to tell.

    Args:
        says: see `Assistants.says`.
    """
    words = built_in_vocabulary()
    prompts = {
        **{
            adjective: Caption(noun=None, adjective=adjective).phrase
            for adjective in words.adjectives
        },
        **{place: Caption(noun=None, place=place).phrase for place in words.places},
        **{shown: Caption(noun=None, look=look).phrase for shown, look in words.looks.items()},
    }
    told = None if says is None else says(list(prompts))
    known = [True] * len(prompts) if told is None else [one >= MIN_TRUST for one in told]
    return tuple(
        Candidate(keyword=keyword, prompt=prompt)
        for (keyword, prompt), is_known in zip(prompts.items(), known, strict=True)
        if is_known
    )


HALF = 0.5
PER_CENT = 100.0
MAX_SHUFFLED = 1_000
"""Chance is measured on a random part of more samples than this; a keyword that is worth a test stands out there, too."""


@dataclass(frozen=True, kw_only=True)
class CaptionContrast:
    """How much more often captions of failures contain a keyword than captions of other samples.

    Args:
        n_failed: failures whose caption contains it.
        n_right: other samples whose caption contains it.
        accuracy: share of the samples with such a caption that did not fail.
        log_odds: logarithm of the odds ratio, half a caption added to each count, over its standard error.
        p_value: Fisher's one-sided exact test, or that of groups.
        association: phi coefficient of containing and failing, -1 to 1.
    """

    n_failed: int
    n_right: int
    accuracy: float
    log_odds: float
    p_value: float
    association: float


@dataclass(frozen=True, kw_only=True)
class Suggestion:
    """A keyword with everything that was measured of it on the samples of a class.

    Args:
        keyword: as shown to people.
        prompt: what was put to the encoder.
        error_score: how well similarity to the prompt tells failures from other samples, 0 to 1.
        threshold: similarity from which on a sample is meant: what best tells captions that contain the keyword from those that do
            not, without a look at predictions; if captions do not tell, what best tells failures from other samples.
        p_value: chance of such an Error Score when predictions are shuffled, or None.
        family_p: the same for the best of all keywords of the class, or None.
        clip_score: mean similarity of failures minus that of other samples, in hundredths.
        captions: what captions say of it, or None without captions.
    """

    keyword: str
    prompt: str
    error_score: float
    threshold: float
    p_value: float | None
    family_p: float | None
    clip_score: float
    captions: CaptionContrast | None


def caption_contrast(
    containing: BoolArray,
    has_caption: BoolArray,
    failed: BoolArray,
    groups: IntArray | None = None,
) -> CaptionContrast:
    """Compare captions of failures with captions of other samples; samples without a caption are left out, groups [n] count once."""
    said, wrong = containing[has_caption], failed[has_caption]
    n_wrong, n_others = int(wrong.sum()), int((~wrong).sum())
    in_wrong, in_others = int((said & wrong).sum()), int((said & ~wrong).sum())
    cells = np.array([in_wrong, n_wrong - in_wrong, in_others, n_others - in_others]) + HALF
    return CaptionContrast(
        n_failed=in_wrong,
        n_right=in_others,
        accuracy=in_others / (in_wrong + in_others) if in_wrong + in_others else float("nan"),
        log_odds=float(
            np.log(cells[0] * cells[3] / (cells[1] * cells[2])) / np.sqrt(np.sum(1.0 / cells))
        ),
        p_value=group_p(said, wrong, None if groups is None else groups[has_caption]),
        association=association(said, wrong),
    )


def association(first: BoolArray, second: BoolArray) -> float:
    """Return the phi coefficient of two properties of the same samples; 0 if one of them never varies.

    >>> association(np.array([True, True, False, False]), np.array([True, True, False, False]))
    1.0
    """
    if not len(first):
        return 0.0
    spread = first.mean() * (1 - first.mean()) * second.mean() * (1 - second.mean())
    if spread <= 0:
        return 0.0
    return float(
        np.round(((first & second).mean() - first.mean() * second.mean()) / np.sqrt(spread), 12)
    )


def meaning_cut(
    similarities: FloatArray, containing: BoolArray | None, has_caption: BoolArray
) -> float:
    """Return which of the similarities [n] best tells captions that contain a keyword from others; infinite if none does."""
    if containing is None:
        return float("inf")
    return float(
        error_scores(similarities[None, has_caption], containing[has_caption]).threshold[0]
    )


def _random_part(n_samples: int, draws: np.random.Generator) -> IntArray | slice:
    if n_samples <= MAX_SHUFFLED:
        return slice(None)
    return np.sort(draws.permutation(n_samples)[:MAX_SHUFFLED])


def scored(
    candidates: Sequence[Candidate],
    similarities: FloatArray,
    failed: BoolArray,
    has_caption: BoolArray,
    *,
    n_permutations: int,
    draws: np.random.Generator,
    groups: IntArray | None = None,
) -> tuple[Suggestion, ...]:
    """Measure candidates, in their order.

    Args:
        candidates: keywords of one class.
        similarities: of prompts and samples [m, n].
        failed: which samples failed [n].
        has_caption: which samples have a caption [n].
        n_permutations: how often predictions are shuffled; 0 for never.
        draws: what shuffles.
        groups: number of the group of every sample [n]; None: each is its own.
    """
    scores = error_scores(similarities, failed)
    cuts = [
        meaning_cut(row, one.containing, has_caption)
        for one, row in zip(candidates, similarities, strict=True)
    ]
    thresholds = np.where(np.isfinite(cuts), cuts, scores.threshold)
    gaps = PER_CENT * (similarities[:, failed].mean(axis=1) - similarities[:, ~failed].mean(axis=1))
    single: list[float | None] = [None] * len(candidates)
    family: list[float | None] = [None] * len(candidates)
    if n_permutations:
        part = _random_part(len(failed), draws)
        null = error_score_null(
            similarities[:, part],
            failed[part],
            n_permutations=n_permutations,
            generator=draws,
            groups=None if groups is None else groups[part],
        )
        single, family = (
            [float(value) for value in null.p_value],
            [float(value) for value in null.family_p],
        )
    return tuple(
        Suggestion(
            keyword=candidate.keyword,
            prompt=candidate.prompt,
            error_score=float(scores.score[place]),
            threshold=float(thresholds[place]),
            p_value=single[place],
            family_p=family[place],
            clip_score=float(gaps[place]),
            captions=None
            if candidate.containing is None
            else caption_contrast(candidate.containing, has_caption, failed, groups),
        )
        for place, candidate in enumerate(candidates)
    )


N_TOLD = 3


def nothing_good(suggested: Sequence[Suggestion], n_failed: int) -> str:
    least = min((one.p_value for one in suggested if one.p_value is not None), default=1.0)
    return (
        f"None of {len(suggested)} keywords tells the {n_failed} failures from the other samples "
        f"(smallest p = {least:.2g}, each keyword taken alone)."
    )


def seen_by_captions_only(unseen: Sequence[Suggestion], *, largest_p: float) -> list[str]:
    """Return one sentence for each of the keywords that captions tell and embeddings do not, the clearest first."""
    contrasts = {
        one.keyword: one.captions
        for one in unseen
        if one.captions is not None and one.captions.p_value <= largest_p
    }
    return [
        f"Captions of failures say {_told(keyword, contrast)} more often, but the embeddings do not show it."
        for keyword, contrast in _clearest(contrasts)
    ]


def without_text_side(
    space: str, contrasts: Mapping[str, CaptionContrast], *, largest_p: float
) -> str:
    """Return what captions alone tell, where nothing can be compared with embeddings."""
    why = f"The embeddings called {space!r} have no text side, so keywords cannot become slices."
    told = [
        _told(keyword, contrast)
        for keyword, contrast in _clearest(contrasts)
        if contrast.p_value <= largest_p
    ]
    return f"{why} Captions of failures more often say {', '.join(told)}." if told else why


def _clearest(contrasts: Mapping[str, CaptionContrast]) -> list[tuple[str, CaptionContrast]]:
    return sorted(contrasts.items(), key=lambda item: (item[1].p_value, item[0]))[:N_TOLD]


def _told(keyword: str, contrast: CaptionContrast) -> str:
    return f"{keyword!r} ({contrast.n_failed} failures, {contrast.n_right} others)"


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
        assistants: Assistants = NO_ASSISTANTS,
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
