"""A phrase while it is being typed: scored on the discovery half only, in far less than a tenth of a second."""

import math
from dataclasses import dataclass, replace

import numpy as np

from weakspot.core.arrays import BoolArray, FloatArray, IntArray
from weakspot.core.class_embeddings import obstacle
from weakspot.core.error_score import error_scores, score_at
from weakspot.core.errors import DataError, NotEnoughDataError
from weakspot.core.evidence import Share
from weakspot.core.group_tests import group_p
from weakspot.core.rules import Rule
from weakspot.core.seeding import generator
from weakspot.core.statistics import fisher_p
from weakspot.discover.hypothesis import INSIDE, HypothesisDiscoverer
from weakspot.lexicon.spoken_rules import spoken_rule
from weakspot.pipeline.hypotheses import (
    ALIGN,
    TextSide,
    hypothesis_method,
    matching_prompts,
    share_matching,
)
from weakspot.pipeline.phrase_answers import (
    CERTAIN,
    Fit,
)
from weakspot.pipeline.phrase_judgement import PHRASE, RULE, judge
from weakspot.pipeline.preparation import CLIP
from weakspot.web.services.classes.samples import MOST_SAMPLES, ClassMembers, class_members
from weakspot.web.services.view import FLOAT32, View, pack
from weakspot.web.services.workspace import Workspace

N_PARTS = 5
MOST_EXACT = 2000
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


@dataclass(frozen=True, kw_only=True)
class HeldOut:
    """A phrase on samples of the same half whose threshold was chosen on the others.

    Args:
        score: Error Score, all samples taken together.
        p_value: Fisher's exact test on the same counts, or that of groups.
    """

    score: float
    p_value: float


def phrase_score(
    workspace: Workspace, title: str, phrase: str, *, offset: int = 0, limit: int = MOST_SAMPLES
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
    held_out = held_out_score(similarities, failed, parts, groups)
    matching = share_matching(both)
    is_ruled = phrase_rule(workspace, words) is not None
    judged = judge(
        separates=held_out.p_value <= CERTAIN,
        matching=matching,
        inside=None,
        outside=None,
        trust=None if is_ruled else text_side(workspace).known(words, members.problem),
        wording=LIVE_RULE if is_ruled else LIVE_PHRASE,
    )
    return PhraseScore(
        title=title,
        phrase=words,
        score=float(best.score[0]),
        threshold=threshold if np.isfinite(threshold) else None,
        held_out_score=held_out.score,
        p_value=held_out.p_value,
        matching=matching,
        fit=judged.fit,
        advice=judged.advice,
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
    from weakspot.web.services.classes.embedding_pass import products

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


def text_side(workspace: Workspace) -> TextSide:
    """Return phrases to embeddings, and what is known of words."""
    helping = workspace.prepared.assistants
    return TextSide(embed=workspace.embed_texts, trust=helping.trust, measured=helping.measured)


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


@dataclass(frozen=True, kw_only=True, eq=False)
class Part:
    """A fixed part of the samples of a class.

    Args:
        own: places of its samples.
        others: places of all other samples.
        others_failed: which of those failed.
    """

    own: IntArray
    others: IntArray
    others_failed: BoolArray


def class_parts(workspace: Workspace, members: ClassMembers) -> tuple[Part, ...]:
    title, seed = members.problem.title, workspace.project.settings.seed
    return workspace.once(
        f"class parts {title}",
        lambda: parts_of(members.failed, members.comparable.groups, seed=seed, title=title),
    )


def parts_of(
    failed: BoolArray, groups: IntArray | None = None, *, seed: int, title: str
) -> tuple[Part, ...]:
    """Return five parts, failures and others spread evenly among them; the same every time. Groups [n] stay whole."""
    draws = generator(seed, "phrase parts", title)
    number = np.zeros(len(failed), dtype=np.int64)
    if groups is not None:
        from weakspot.core.group_dealing.kernels import fold_numbers

        number = fold_numbers(failed, draws.permutation(len(failed)), N_PARTS, groups)[0]
    for side in (True, False) if groups is None else ():
        places = draws.permutation(np.flatnonzero(failed == side))
        number[places] = np.arange(len(places)) % N_PARTS
    own = [np.flatnonzero(number == part) for part in range(N_PARTS)]
    others = [np.flatnonzero(number != part) for part in range(N_PARTS)]
    return tuple(
        Part(own=mine, others=rest, others_failed=failed[rest])
        for mine, rest in zip(own, others, strict=True)
    )


def held_out_score(
    similarities: FloatArray,
    failed: BoolArray,
    parts: tuple[Part, ...],
    groups: IntArray | None = None,
) -> HeldOut:
    """Return how well a phrase does on samples that had no part in choosing its threshold: each part is judged by the others.

    Args:
        similarities: of all samples [n].
        failed: which of them failed [n].
        parts: from `parts_of`.
        groups: number of the group of every sample [n]; None: each is its own.
    """
    if failed.all() or not failed.any():
        return HeldOut(score=0.0, p_value=1.0)
    inside = np.zeros(len(failed), dtype=np.bool_)
    for part in parts:
        if len(part.own) and len(part.others):
            threshold = float(
                error_scores(similarities[part.others][None], part.others_failed).threshold[0]
            )
            inside[part.own] = similarities[part.own].astype(np.float64) >= threshold
    n_failed, n_inside, wrong_inside = (
        int(failed.sum()),
        int(inside.sum()),
        int(np.count_nonzero(inside & failed)),
    )
    score = wrong_inside / n_failed - (n_inside - wrong_inside) / (len(failed) - n_failed)
    if groups is not None:
        return HeldOut(score=score, p_value=group_p(inside, failed, groups))
    return HeldOut(score=score, p_value=_chance(wrong_inside, n_inside, n_failed, len(failed)))


def _chance(wrong_inside: int, n_inside: int, n_failed: int, n_samples: int) -> float:
    """Return Fisher's exact p-value; with thousands of failures its normal limit, which is as good and takes no time."""
    if min(n_failed, n_inside) <= MOST_EXACT:
        return fisher_p(wrong_inside, n_inside, n_failed - wrong_inside, n_samples - n_inside)
    expected = n_inside * n_failed / n_samples
    variance = expected * (1 - n_inside / n_samples) * (n_samples - n_failed) / (n_samples - 1)
    if variance <= 0:
        return 1.0
    return 0.5 * math.erfc((wrong_inside - 0.5 - expected) / math.sqrt(2 * variance))
