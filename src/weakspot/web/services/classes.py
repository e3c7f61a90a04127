"""Class view: all classes, the samples of one, and a phrase scored while it is typed; on the discovery half only."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from weakspot.core.arrays import AnyArray, BoolArray, FloatArray, IntArray, generator
from weakspot.core.assistants import Assistants
from weakspot.core.dataset import Dataset, Task
from weakspot.core.errors import DataError, NotEnoughDataError, WeakspotError
from weakspot.core.evidence import Share
from weakspot.core.failures import ClassProblem, predicted_classes
from weakspot.core.group_tests import group_p
from weakspot.core.rules import Rule
from weakspot.core.run import RunRecord
from weakspot.core.samples import obstacle
from weakspot.core.statistics import fisher_p
from weakspot.discover.error_score import error_scores, phrase_scores, score_at
from weakspot.discover.hypothesis import INSIDE, HypothesisDiscoverer
from weakspot.discover.keywords import caption_candidates, vocabulary_candidates
from weakspot.run.assistants import CAPTION_COLUMN
from weakspot.run.halves import withhold
from weakspot.run.phrase_questions import (
    ALIGN,
    CERTAIN,
    PHRASE,
    RULE,
    Fit,
    hypothesis_method,
    judge,
    matching_prompts,
    share_matching,
    told_of,
)
from weakspot.run.preparation import CLIP
from weakspot.run.suggestions import SuggestionSource
from weakspot.web.services.slice_editing import N_PARTS, even_parts
from weakspot.web.services.view import FLOAT32, INT32, UINT8, SamplePage, View, pack, share_of
from weakspot.web.services.workspace import Workspace, make_beside
from weakspot.words.caption_rule import spoken_rule

MAX_SAMPLES = 200_000
RIGHT_OR_WRONG = ("right", "wrong")


class ClassSamples(SamplePage):
    """Samples of a class on the discovery half, in a fixed order: those that can be compared with phrases come first.

    Columns are base64 of little-endian numbers, one per sample from `offset` on.

    Args:
        title: the class, as people read it.
        n_comparable: how many of them have an embedding.
        answers: what the classifier can say; `answer` counts into it.
        rows: int32 row numbers.
        failed: uint8, 1 where the classifier failed.
        confidence: float32 probability that the classifier gave to the truth, NaN where unknown.
        answer: int32 place in `answers`, -1 where unknown.
    """

    title: str
    n_comparable: int
    answers: list[str]
    rows: str
    failed: str
    confidence: str
    answer: str


@dataclass(frozen=True, kw_only=True, eq=False)
class ClassMembers:
    """The samples of a class on the discovery half, those with embeddings first.

    Args:
        problem: all of them, in that order.
        embeddings: unit vectors [n_comparable, d] of the first ones; None if there is no space to compare phrases in, so that
            phrases speak of columns and all can be compared.
    """

    problem: ClassProblem
    embeddings: FloatArray | None

    @property
    def n_comparable(self) -> int:
        return len(self.problem.rows) if self.embeddings is None else len(self.embeddings)

    @property
    def comparable(self) -> ClassProblem:
        return self.problem.only(np.arange(self.n_comparable))

    @property
    def failed(self) -> BoolArray:
        return self.problem.failed[: self.n_comparable]


def class_members(workspace: Workspace, title: str) -> ClassMembers:
    """Return the samples of a class, made once.

    Raises:
        DataError: if there is no such class.
    """
    problem = workspace.problem(title)
    return workspace.once(f"class members {title}", lambda: known_first(workspace, problem))


def class_samples(
    workspace: Workspace, title: str, *, offset: int = 0, limit: int = MAX_SAMPLES
) -> ClassSamples:
    make_beside(workspace, "ready for phrases", lambda: _get_ready(workspace), patience=0.0)
    members = class_members(workspace, title)
    problem, part = members.problem, slice(offset, offset + limit)
    dataset = workspace.samples.dataset
    names, codes = coded_answers(dataset, problem.rows[part], problem.failed[part])
    return ClassSamples(
        title=title,
        tables=workspace.tables_key,
        total=len(problem.rows),
        n_comparable=members.n_comparable,
        offset=offset,
        answers=list(names),
        rows=pack(problem.rows[part], INT32),
        failed=pack(problem.failed[part], UINT8),
        confidence=pack(problem.confidence[part], FLOAT32),
        answer=pack(codes, INT32),
    )


def coded_answers(
    dataset: Dataset, rows: IntArray, failed: BoolArray
) -> tuple[tuple[str, ...], AnyArray]:
    """Return the possible answers, and which of them each row got; in a multi-label task an answer is only right or wrong."""
    if dataset.task is Task.SINGLE_LABEL:
        return dataset.class_names, predicted_classes(dataset, rows)
    return RIGHT_OR_WRONG, failed.astype(np.int32)


def titles_of_row(workspace: Workspace, row: int) -> tuple[str, ...]:
    """Return the classes whose discovery samples a row is among; none if it is not on the discovery half."""
    rows = workspace.discovery.rows
    place = int(np.searchsorted(rows, row))
    if place >= len(rows) or int(rows[place]) != row:
        return ()
    dataset = workspace.samples.dataset
    if dataset.task is Task.SINGLE_LABEL:
        found = [dataset.class_names[int(dataset.labels[row])]]
    else:
        has = dataset.label_matrix[row]
        found = [
            name if has[code] else f"no {name}" for code, name in enumerate(dataset.class_names)
        ]
    return tuple(title for title in found if title in workspace.problems)


def _get_ready(workspace: Workspace) -> None:
    """Load what the first phrase needs while people still look at images: the text side, and compiled loops."""
    from weakspot.web.services.embedding_pass import products

    one: FloatArray = np.zeros((1, 1), dtype=np.float32)
    products(one, one[0], one[0], np.zeros((3, 1), dtype=np.float32))
    if workspace.has_text_side:
        workspace.embed_texts(["an image"])


def known_first(workspace: Workspace, problem: ClassProblem) -> ClassMembers:
    """Return the samples of a class, those with embeddings first."""
    if CLIP not in workspace.samples.spaces:
        return ClassMembers(problem=problem, embeddings=None)
    known, embeddings = workspace.class_embeddings(problem.title)
    left_out = np.flatnonzero(~np.isin(problem.rows, known.rows))
    order = np.argsort(problem.rows)
    first = order[np.searchsorted(problem.rows, known.rows, sorter=order)]
    whole = problem.only(np.concatenate([first, left_out]))
    return ClassMembers(problem=whole, embeddings=embeddings)


MAX_EXACT = 2000
LIVE_PHRASE = replace(
    PHRASE,
    good="These words pick out failures. Look at the images on the right: do they show what you wrote?",
    matches_only="Images with this are found, but the AI is not clearly wrong on them more often: think of something else that "
    "sets the wrong images apart.",
)
LIVE_RULE = replace(
    RULE,
    good="Such samples fail more often on the half that you may look at. Check it on the held-out half.",
    matches_only="There are such samples, but they do not clearly fail more often: think of something else that sets failures "
    "apart.",
)


class ScoredPhrase(View):
    """What a phrase says of images.

    Args:
        phrase: the words, without blanks around them.
        score: Error Score with the best threshold.
        threshold: that threshold; null if none is better than guessing.
        advice: what to do next, in words.
    """

    phrase: str
    score: float
    threshold: float | None
    advice: str


class PhraseScore(ScoredPhrase):
    """What a phrase says of a class, on the discovery half alone.

    Args:
        title: the class.
        held_out_score: Error Score of samples whose threshold was chosen on other samples of this half.
        p_value: chance of so good a held-out separation if the words had nothing to do with failures.
        matching: samples that the class with the phrase fits better than the class alone.
        fit: what became of the phrase.
        n_samples: samples that were compared.
        offset: place of the first similarity in the order of the class's samples.
        similarities: base64 of little-endian float32, one per sample from `offset` on.
    """

    title: str
    held_out_score: float
    p_value: float
    matching: Share
    fit: Fit
    n_samples: int
    offset: int
    similarities: str


def phrase_score(
    workspace: Workspace, title: str, phrase: str, *, offset: int = 0, limit: int = MAX_SAMPLES
) -> PhraseScore:
    """Score a phrase on the discovery samples of a class.

    Raises:
        DataError: if there is no such class, or its samples have no embeddings.
        ModelError: if the embedder has no text side.
        NotEnoughDataError: if too few samples failed, or too few did not.
    """
    words = phrase.strip()
    members, similarities, both = similarities_to(workspace, title, words)
    failed = members.failed
    best = error_scores(similarities[None], failed)
    threshold = float(best.threshold[0])
    parts, groups = class_parts(workspace, members), members.comparable.groups
    held_out, p_value = held_out_score(similarities, failed, parts, groups)
    matching = share_matching(both)
    is_ruled = phrase_rule(workspace, words) is not None
    fit, advice = judge(
        separates=p_value <= CERTAIN,
        matching=matching,
        inside=None,
        outside=None,
        trust=None
        if is_ruled
        else told_of(workspace.prepared.assistants.trust, words, members.problem),
        wording=LIVE_RULE if is_ruled else LIVE_PHRASE,
    )
    return PhraseScore(
        title=title,
        phrase=words,
        score=float(best.score[0]),
        threshold=threshold if np.isfinite(threshold) else None,
        held_out_score=held_out,
        p_value=p_value,
        matching=matching,
        fit=fit,
        advice=advice,
        n_samples=len(similarities),
        offset=offset,
        similarities=pack(similarities[offset : offset + limit], FLOAT32),
    )


def score_with(workspace: Workspace, title: str, phrase: str, threshold: float) -> float:
    members, similarities, _ = similarities_to(workspace, title, phrase.strip())
    return score_at(similarities.astype(np.float64), members.failed, threshold)


def similarities_to(
    workspace: Workspace, title: str, phrase: str
) -> tuple[ClassMembers, FloatArray, FloatArray]:
    """Return the comparable samples of a class, their similarity to a phrase [n], and to the class with and without it [n, 2].

    Raises:
        NotEnoughDataError: if too few samples failed, or too few did not.
    """
    from weakspot.web.services.embedding_pass import products

    members, method = class_members(workspace, title), phrase_method(workspace)
    note = obstacle(
        members.comparable, min_failures=method.min_failures, min_right=method.min_right
    )
    if note:
        raise NotEnoughDataError(note, where=title)
    rule = phrase_rule(workspace, phrase)
    if rule is not None:
        inside = rule.members(workspace.samples, members.comparable.rows).astype(np.float32)
        return members, inside, np.stack([inside, np.full_like(inside, INSIDE)], axis=1)
    if members.embeddings is None:
        raise DataError(
            "The samples have no embeddings that phrases could be compared with.",
            fix='Ask for a value of a column, as in "colour = red".',
        )
    combined, plain = matching_prompts(phrase, members.problem)
    embedding = method.phrase_directions([phrase], workspace.embed_texts, members.problem)[phrase]
    found = np.empty((3, len(members.embeddings)), dtype=np.float32)
    products(members.embeddings, embedding, workspace.embed_texts([combined])[0], found)
    found[2] = _plain_similarities(workspace, members, plain)
    return members, found[0], found[1:].T


def phrase_rule(workspace: Workspace, phrase: str) -> Rule | None:
    """Return the columns or caption words that a phrase speaks of as a rule; None for what is compared with embeddings."""
    samples = workspace.samples
    return spoken_rule(
        phrase,
        samples.dataset,
        has_text_side=workspace.has_text_side,
        advice=ALIGN if samples.spaces else "",
    )


def assistants_of(workspace: Workspace) -> Assistants:
    """Return who can be asked for words, with phrases that are embedded once."""
    return replace(workspace.prepared.assistants, embed_texts=workspace.embed_texts)


def _plain_similarities(workspace: Workspace, members: ClassMembers, plain: str) -> FloatArray:
    assert members.embeddings is not None
    embeddings, title = members.embeddings, members.problem.title
    return workspace.once(
        f"plain similarities {title}", lambda: embeddings @ workspace.embed_texts([plain])[0]
    )


def phrase_method(workspace: Workspace) -> HypothesisDiscoverer:
    """Return the method that phrases of people are put through, as it is configured."""
    return workspace.once(
        "hypothesis method",
        lambda: replace(hypothesis_method(workspace.project.settings), space=CLIP),
    )


Parts = Sequence[tuple[IntArray, IntArray]]
"""Fixed parts of the samples of a class: the places of each part's own samples, and of all others."""


def class_parts(workspace: Workspace, members: ClassMembers) -> Parts:
    title, seed = members.problem.title, workspace.project.settings.seed
    return workspace.once(
        f"class parts {title}",
        lambda: parts_of(members.failed, members.comparable.groups, seed=seed, title=title),
    )


def parts_of(failed: BoolArray, groups: IntArray | None = None, *, seed: int, title: str) -> Parts:
    """Return five parts, failures and others spread evenly among them; the same every time. Groups [n] stay whole."""
    number = even_parts(failed, groups, generator(seed, "phrase parts", title))
    return [
        (np.flatnonzero(number == part), np.flatnonzero(number != part)) for part in range(N_PARTS)
    ]


def held_out_score(
    similarities: FloatArray,
    failed: BoolArray,
    parts: Parts,
    groups: IntArray | None = None,
) -> tuple[float, float]:
    """Return the Error Score of a phrase, and its p-value, on samples that had no part in choosing its threshold.

    Each part is judged by the threshold of the others. The p-value is of Fisher's exact test on the same counts, or of groups.

    Args:
        similarities: of all samples [n].
        failed: which of them failed [n].
        parts: from `parts_of`.
        groups: number of the group of every sample [n]; None: each is its own.
    """
    if failed.all() or not failed.any():
        return 0.0, 1.0
    inside = np.zeros(len(failed), dtype=np.bool_)
    for own, others in parts:
        if len(own) and len(others):
            best = error_scores(similarities[others][None], failed[others])
            inside[own] = similarities[own].astype(np.float64) >= float(best.threshold[0])
    n_failed, n_inside, wrong_inside = (
        int(failed.sum()),
        int(inside.sum()),
        int(np.count_nonzero(inside & failed)),
    )
    score = wrong_inside / n_failed - (n_inside - wrong_inside) / (len(failed) - n_failed)
    if groups is not None:
        return score, group_p(inside, failed, groups)
    return score, _chance(wrong_inside, n_inside, n_failed, len(failed))


def _chance(wrong_inside: int, n_inside: int, n_failed: int, n_samples: int) -> float:
    """Return Fisher's exact p-value; with thousands of failures its normal limit, which is as good and takes no time."""
    if min(n_failed, n_inside) <= MAX_EXACT:
        return fisher_p(wrong_inside, n_inside, n_failed - wrong_inside, n_samples - n_inside)
    expected = n_inside * n_failed / n_samples
    variance = expected * (1 - n_inside / n_samples) * (n_samples - n_failed) / (n_samples - 1)
    if variance <= 0:
        return 1.0
    return 0.5 * math.erfc((wrong_inside - 0.5 - expected) / math.sqrt(2 * variance))


MAX_CAPTIONED = 2000
MAX_ASKED = 200
MAX_WORDS = 3
MIN_CAPTIONS = 5
MAX_KEYWORDS = 300
WAIT_SECONDS = 2.0
CAPTIONS, VOCABULARY = "captions", "vocabulary"


class ScoredWords(View):
    """Words, and how well they tell samples apart.

    Args:
        words: as a person would type them.
        score: Error Score on the discovery half, with the threshold that is best there; 1 for all and only these.
    """

    words: str
    score: float


class Suggestions(View):
    """Words to start from, best first.

    Args:
        title: the class.
        words: at most ten; empty if the embedder has no text side or the class has too few failures.
        source: `captions` or `vocabulary`: where the words come from.
        is_complete: whether nothing better is being worked out; if not, ask again.
    """

    title: str
    words: list[ScoredWords]
    source: str
    is_complete: bool


def suggestions(workspace: Workspace, title: str) -> Suggestions:
    """Return the best keywords of a class; while captions are being asked for, those of the built-in vocabulary."""
    members = class_members(workspace, title)
    if not _can_score(workspace, members):
        return Suggestions(title=title, words=[], source=VOCABULARY, is_complete=True)
    is_complete = True
    if workspace.prepared.assistants.captions is not None:
        name = f"caption keywords {title}"
        found = make_beside(
            workspace, name, lambda: _from_captions(workspace, members), patience=WAIT_SECONDS
        )
        is_complete = found is not None
        if found:
            return Suggestions(title=title, words=found, source=CAPTIONS, is_complete=True)
    words = workspace.once(
        f"vocabulary keywords {title}", lambda: suggested_words(workspace, members)
    )
    return Suggestions(title=title, words=words, source=VOCABULARY, is_complete=is_complete)


def suggested_words(
    workspace: Workspace, members: ClassMembers, spoken: Sequence[str] = ()
) -> list[ScoredWords]:
    """Return suggestions from the vocabulary, the user's columns and words of captions."""
    no_columns = np.zeros((len(members.comparable.rows), 0), dtype=np.float32)
    source = SuggestionSource(
        samples=withhold(workspace.samples, workspace.project.settings.repair.groups),
        problem=members.comparable,
        embeddings=no_columns if members.embeddings is None else members.embeddings,
        space=CLIP,
        obstacle="",
        found_on=workspace.discovery_use,
        method=phrase_method(workspace),
        assistants=assistants_of(workspace),
        seed=workspace.project.settings.seed,
    )
    return [ScoredWords(words=one.words, score=one.score) for one in source.suggest(spoken)]


def vocabulary_embeddings(workspace: Workspace) -> Mapping[str, FloatArray]:
    """Return the unit vector [d] of every built-in word that may be said, whatever the class: enough to rank many classes."""
    words = [one.keyword for one in vocabulary_candidates(workspace.prepared.assistants.says)]
    method = phrase_method(workspace)
    return workspace.once(
        "vocabulary embeddings", lambda: method.phrase_embeddings(words, workspace.embed_texts)
    )


def _can_score(workspace: Workspace, members: ClassMembers) -> bool:
    method = phrase_method(workspace)
    is_thin = obstacle(
        members.comparable, min_failures=method.min_failures, min_right=method.min_right
    )
    return workspace.has_text_side and members.embeddings is not None and not is_thin


def _from_captions(workspace: Workspace, members: ClassMembers) -> list[ScoredWords]:
    problem = members.comparable
    places = _captioned(workspace, members)
    captions = workspace.prepared.assistants.captions
    texts = [""] * len(problem.rows)
    for place, text in zip(places, captions(problem.rows[places]) if captions else [], strict=True):
        texts[int(place)] = text
    found = caption_candidates(
        texts, problem, max_words=MAX_WORDS, min_captions=MIN_CAPTIONS, most=MAX_KEYWORDS
    )
    words = [one.keyword for one in found]
    return suggested_words(workspace, members, words) if words else []


def _captioned(workspace: Workspace, members: ClassMembers) -> IntArray:
    """Return the places of samples whose captions are read, half of them failures; few where a model has to be asked."""
    dataset = workspace.samples.dataset
    is_given = CAPTION_COLUMN in dataset.metadata_names and not pa.types.is_null(
        dataset.metadata(CAPTION_COLUMN).type
    )
    most = MAX_CAPTIONED if is_given else MAX_ASKED
    failed = members.failed
    if len(failed) <= most:
        return np.arange(len(failed))
    draws = generator(workspace.project.settings.seed, "suggestions", members.problem.title)
    wrong, right = (draws.permutation(np.flatnonzero(failed == side)) for side in (True, False))
    n_wrong = max(min(most // 2, len(wrong)), most - len(right))
    return np.sort(np.concatenate([wrong[:n_wrong], right[: most - n_wrong]]))


MIN_ACCURACY, MAX_ACCURACY = 0.2, 0.8
RANKING_WAIT_SECONDS = 0.5


class ClassRow(View):
    """One class on the discovery half.

    Args:
        title: the class, as people read it.
        n_samples: its samples.
        n_failed: failures among them.
        accuracy: share of right ones, with its interval.
        best_score: the largest Error Score of any suggested word; null if it is not known.
        is_promising: whether there are enough right and wrong samples to tell what sets them apart: accuracy from 20 to 80 %.
        findings: what the newest run confirmed of the class as a whole, in sentences.
    """

    title: str
    n_samples: int
    n_failed: int
    accuracy: Share
    best_score: float | None
    is_promising: bool
    findings: list[str]


class ClassList(View):
    """All classes, most promising first.

    Args:
        classes: promising ones by their best score, then the others in the same way.
        tables: what row numbers belong to.
        is_ranked: whether best scores are known; if not, they are being worked out: ask again.
        can_compare: whether phrases can be compared with samples at all.
    """

    classes: list[ClassRow]
    tables: str
    is_ranked: bool
    can_compare: bool


def class_list(workspace: Workspace) -> ClassList:
    """Return all classes of the discovery half; best scores are worked out beside the request."""
    can_compare = workspace.has_text_side and CLIP in workspace.samples.spaces
    scores: dict[str, float] | None = {}
    if can_compare:
        try:
            scores = make_beside(
                workspace,
                "best scores",
                lambda: best_scores(workspace),
                patience=RANKING_WAIT_SECONDS,
            )
        except WeakspotError:
            can_compare = False
    said = findings_by_class(workspace)
    rows = [
        _row(problem, (scores or {}).get(title), said.get(title, []))
        for title, problem in workspace.problems.items()
    ]
    return ClassList(
        classes=sorted(rows, key=_order),
        tables=workspace.tables_key,
        is_ranked=scores is not None,
        can_compare=can_compare,
    )


def best_scores(workspace: Workspace) -> dict[str, float]:
    """Return for every class the largest Error Score of a word of the built-in vocabulary."""
    embedded = vocabulary_embeddings(workspace)
    if not embedded:
        return {}
    prompts = np.stack(list(embedded.values()))
    found: dict[str, float] = {}
    for title in workspace.problems:
        members = class_members(workspace, title)
        if members.embeddings is not None and members.failed.any() and not members.failed.all():
            found[title] = float(
                phrase_scores(prompts, members.embeddings, members.failed).score.max(initial=0.0)
            )
    return found


def findings_by_class(workspace: Workspace) -> dict[str, list[str]]:
    """Return what the newest run confirmed of whole classes."""
    runs = workspace.project.store.runs.run_ids()
    return workspace.make_of_run(runs[-1], "class findings", _confirmed) if runs else {}


def _confirmed(record: RunRecord) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for one in record.class_findings:
        if one.is_confirmed:
            found.setdefault(one.class_name, []).append(one.sentence)
    return found


def _row(problem: ClassProblem, best_score: float | None, findings: list[str]) -> ClassRow:
    n_samples = len(problem.rows)
    accuracy = share_of(problem, problem.n_right, n_samples)
    return ClassRow(
        title=problem.title,
        n_samples=n_samples,
        n_failed=problem.n_failed,
        accuracy=accuracy,
        best_score=best_score,
        is_promising=MIN_ACCURACY <= accuracy.value <= MAX_ACCURACY,
        findings=findings,
    )


def _order(row: ClassRow) -> tuple[bool, float, int, str]:
    return not row.is_promising, -(row.best_score or 0.0), -row.n_failed, row.title
