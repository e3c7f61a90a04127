"""Keywords that captions of failures say and captions of other samples do not, put to the embeddings as a second witness.

After Kim, Mo, Kim, Lee, Lee and Shin, *Discovering and Mitigating Visual Biases through Keyword Explanation* (Bias-to-Text, 2024),
and the suggestions of Lee and others, *Clarify* (2024). `docs/explanation/methods.md` says where this departs from them and why.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace

import numpy as np
import pyarrow as pa
from pydantic import JsonValue

from weakspot.core.arrays import BoolArray, FloatArray, IntArray, unit_rows
from weakspot.core.assistants import (
    MIN_TRUST,
    NO_ASSISTANTS,
    Assistants,
    CaptionRows,
    TrustPhrases,
)
from weakspot.core.bounds import Count, NonNegativeInt, PositiveFraction
from weakspot.core.discoverers import ClassDiscoverer, ClassSamples
from weakspot.core.errors import WeakspotError
from weakspot.core.failures import ClassProblem, FailureCriterion
from weakspot.core.group_tests import group_p
from weakspot.core.roles import Discovery
from weakspot.core.rules import LinearRule
from weakspot.core.samples import Need, SampleSet
from weakspot.core.slices import FailureSlice, SliceName
from weakspot.core.statistics import overlap
from weakspot.discover.error_score import error_score_null, error_scores
from weakspot.words.caption_rule import STOP_WORDS, keywords_in
from weakspot.words.captions import Caption, built_in_vocabulary, counted, noun_of
from weakspot.words.wordnet import everyday_lemma, is_known


def read_captions(
    samples: SampleSet, wanted: Sequence[IntArray], *, column: str, ask: CaptionRows | None
) -> tuple[dict[int, str], str]:
    """Return the captions of the wanted rows, from the column if it holds any, else from the captioner; and why there are none.

    Args:
        samples: where the rows are.
        wanted: rows, class by class; a row may be wanted more than once and is asked for once.
        column: metadata column.
        ask: rows to captions, or None.
    """
    rows = np.unique(np.concatenate([np.zeros(0, dtype=np.int64), *wanted]))
    given = _from_column(samples, rows, column)
    if given or ask is None or not len(rows):
        return given, ""
    try:
        answers = ask(rows)
    except WeakspotError as error:
        return {}, f"The captioner could not be asked: {error}"
    if len(answers) != len(rows):
        return {}, f"The captioner gave {len(answers)} captions for {len(rows)} samples."
    return _speak(rows, answers), ""


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
        chances = error_score_null(
            similarities[:, part],
            failed[part],
            n_permutations=n_permutations,
            generator=draws,
            groups=None if groups is None else groups[part],
        )
        single, family = (values.tolist() for values in chances)
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


WITNESS = "captions"
VOCABULARY_USED = "There are no captions of failures and of other samples, so the words of the built-in vocabulary were tried."


@dataclass(frozen=True, kw_only=True, eq=False)
class _ClassWords:
    """One class with its candidates.

    Args:
        of: its samples that have an embedding.
        candidates: keywords to score.
        has_caption: which samples have a caption [n].
        notes: what to know.
    """

    of: ClassSamples
    candidates: tuple[Candidate, ...]
    has_caption: BoolArray
    notes: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class KeywordsDiscoverer(ClassDiscoverer):
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

    method = "keywords"
    needs = (Need.EMBEDDINGS,)
    is_explaining = True
    auto_place = 4
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

    def discover(
        self,
        samples: SampleSet,
        criterion: FailureCriterion,
        *,
        seed: int,
        assistants: Assistants = NO_ASSISTANTS,
    ) -> Discovery:
        embed = assistants.text_side(self.space)
        every = self._class_words(samples, criterion, seed=seed, assistants=assistants)
        prompts = sorted({each.prompt for words in every for each in words.candidates})
        embeddings: dict[str, FloatArray] = {}
        if embed is not None and prompts:
            embedded = unit_rows(np.asarray(embed(prompts), dtype=np.float32))
            embeddings = dict(zip(prompts, embedded, strict=True))
        return self.gathered(self._told(words, embeddings) for words in every)

    def _told(self, words: _ClassWords, embeddings: dict[str, FloatArray]) -> Discovery:
        of, notes = words.of, list(words.notes)
        if not words.candidates:
            return of.noted(*notes)
        if not embeddings:
            contrasts = {
                each.keyword: caption_contrast(
                    each.containing, words.has_caption, of.problem.failed, of.problem.groups
                )
                for each in words.candidates
                if each.containing is not None
            }
            return of.noted(*notes, without_text_side(self.space, contrasts, largest_p=self.max_p))
        suggested = scored(
            words.candidates,
            np.stack([embeddings[each.prompt] for each in words.candidates])
            @ unit_rows(of.embeddings).T,
            of.problem.failed,
            words.has_caption,
            n_permutations=self.n_permutations,
            draws=self.random(of),
            groups=of.problem.groups,
        )
        slices = self._slices(words, suggested, embeddings)
        unseen = [each for each in suggested if not self._is_good(each)]
        notes += seen_by_captions_only(unseen, largest_p=self.max_p / len(suggested))
        notes += [] if slices else [nothing_good(suggested, of.problem.n_failed)]
        told = of.noted(*notes, n_considered=len(suggested))
        return replace(told, slices=tuple(slices))

    def _class_words(
        self,
        samples: SampleSet,
        criterion: FailureCriterion,
        *,
        seed: int,
        assistants: Assistants,
    ) -> list[_ClassWords]:
        classes = list(self.classes(samples, criterion, seed=seed, assistants=assistants))
        captions, problem = read_captions(
            samples,
            [self._captioned_rows(of) for of in classes if not of.obstacle],
            column=self.caption_column,
            ask=assistants.captions,
        )
        return [self._with_candidates(of, captions, problem) for of in classes]

    def _captioned_rows(self, of: ClassSamples) -> IntArray:
        problem = of.problem
        if len(problem.rows) <= self.max_captioned:
            return problem.rows
        draws = self.random(of, "captioned")
        failures, others = (
            draws.permutation(problem.rows[problem.failed == side]) for side in (True, False)
        )
        half = self.max_captioned // 2
        n_failures = max(min(half, len(failures)), self.max_captioned - len(others))
        return np.concatenate([failures[:n_failures], others[: self.max_captioned - n_failures]])

    def _with_candidates(
        self, of: ClassSamples, captions: Mapping[int, str], problem: str
    ) -> _ClassWords:
        texts = [captions.get(row, "") for row in of.problem.rows.tolist()]
        has_caption = np.array([bool(text) for text in texts], dtype=np.bool_)
        plain = _ClassWords(of=of, candidates=(), has_caption=has_caption, notes=(of.obstacle,))
        if of.obstacle:
            return plain
        if candidates := self._candidates(of, texts, has_caption):
            return replace(plain, candidates=candidates, notes=())
        told = f"{VOCABULARY_USED} {problem}".strip()
        return replace(plain, candidates=vocabulary_candidates(of.assistants.says), notes=(told,))

    def _candidates(
        self, of: ClassSamples, texts: Sequence[str], has_caption: BoolArray
    ) -> tuple[Candidate, ...]:
        """Return what captions say, if failures and other samples have some."""
        failed = of.problem.failed
        if not (np.any(has_caption & failed) and np.any(has_caption & ~failed)):
            return ()
        return caption_candidates(
            texts,
            of.problem,
            max_words=self.max_words,
            min_captions=self.min_captions,
            most=self.max_candidates,
        )

    def _slices(
        self,
        words: _ClassWords,
        suggested: Sequence[Suggestion],
        embeddings: dict[str, FloatArray],
    ) -> list[FailureSlice]:
        containing = {candidate.keyword: candidate.containing for candidate in words.candidates}
        kept: dict[str, BoolArray] = {}
        slices: list[FailureSlice] = []
        for suggestion in sorted(filter(self._is_good, suggested), key=_rank):
            rule = LinearRule(
                space=self.space,
                encoder_id=words.of.encoder_id,
                direction=tuple(embeddings[suggestion.prompt].tolist()),
                threshold=suggestion.threshold,
            )
            inside = rule.members(words.of.samples, words.of.problem.rows)
            is_old = any(
                # A keyword that only narrows another, as `small green` does `green`, is the same finding.
                set(other.split()) < set(suggestion.keyword.split())
                or overlap(inside, members) > self.max_overlap
                for other, members in kept.items()
            )
            if inside.any() and not is_old and len(slices) < self.n_keywords:
                kept[suggestion.keyword] = inside
                said = containing[suggestion.keyword]
                slices.append(self._slice(words, suggestion, rule, inside, said))
        return slices

    def _is_good(self, suggestion: Suggestion) -> bool:
        """Return whether both witnesses point at failures, and one of them clearly."""
        if suggestion.error_score <= 0 or suggestion.clip_score <= 0:
            return False
        if suggestion.captions is not None and suggestion.captions.p_value <= self.max_p:
            return True
        # Where captions do not support a keyword, the embeddings must do so among all keywords together.
        chance = suggestion.p_value if suggestion.captions is None else suggestion.family_p
        return chance is None or chance <= self.max_p

    def _slice(
        self,
        words: _ClassWords,
        suggestion: Suggestion,
        rule: LinearRule,
        inside: BoolArray,
        said: BoolArray | None,
    ) -> FailureSlice:
        """Return the slice of a keyword; if it is not said of half of the members, it is what lies near to it, and says so.

        Args:
            words: the class.
            suggestion: the keyword.
            rule: who is a member.
            inside: which samples of the class are [n].
            said: which captions contain the keyword [n]; None without captions.
        """
        contrast = suggestion.captions
        more: dict[str, JsonValue] = {
            "keyword": suggestion.keyword,
            "clip_score": suggestion.clip_score,
        }
        name = SliceName(
            phrase=suggestion.prompt,
            contrast=suggestion.keyword,
            score=suggestion.error_score,
            describer=self.method,
            n_told=int((inside & words.has_caption).sum()),
        )
        if contrast is not None and said is not None:
            agreement = association(said[words.has_caption], inside[words.has_caption])
            more["caption_agreement"] = agreement
            more |= {f"caption_{key}": value for key, value in asdict(contrast).items()}
            witnessed = {
                "witness": WITNESS,
                "witness_score": contrast.association,
                "is_doubtful": contrast.association <= 0 or agreement <= 0,
                "n_true": int((said & inside & words.has_caption).sum()),
            }
            name = name.model_copy(update=witnessed)
        if name.is_untrue:
            near = f"near to “{name.contrast}”"
            update = {"contrast": near, "n_true": None, "n_told": 0, "is_doubtful": True}
            name = name.model_copy(update=update)
        return self.slice_of(
            words.of,
            rule,
            strength=suggestion.error_score,
            strength_p=suggestion.family_p,
            n_found=int(inside.sum()),
            names=(name,),
            more=more,
        )


def _rank(suggestion: Suggestion) -> tuple[float, float, int, str]:
    """Return what keywords are sorted by: contrast between captions if there are any, Error Score, then brevity."""
    contrast = 0.0 if suggestion.captions is None else suggestion.captions.log_odds
    return (
        -round(contrast, 6),
        -round(suggestion.error_score, 6),
        len(suggestion.keyword.split()),
        suggestion.keyword,
    )
