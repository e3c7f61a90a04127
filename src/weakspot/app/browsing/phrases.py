"""A phrase while it is being typed: scored on the discovery half only, in far less than a tenth of a second."""

from dataclasses import dataclass, replace

import numpy as np

from weakspot.app.browsing.class_samples import MOST_SAMPLES, ClassMembers, class_members
from weakspot.app.browsing.packed import FLOAT32, packed
from weakspot.app.browsing.view import View
from weakspot.app.browsing.workspace import Workspace
from weakspot.app.hypothesising import (
    ADVICE,
    CERTAIN,
    LEAST_MATCHING,
    Fit,
    fit_of,
    hypothesis_method,
    matching_prompts,
    share_matching,
)
from weakspot.app.preparation import JOINT
from weakspot.core.arrays import BoolArray, FloatArray, IntArray
from weakspot.core.class_vectors import obstacle
from weakspot.core.error_score import error_scores, score_at
from weakspot.core.errors import DataError, NotEnoughDataError
from weakspot.core.evidence import Share
from weakspot.core.seeding import generator
from weakspot.core.statistics import fisher_p
from weakspot.discover.hypothesis import HypothesisDiscoverer

N_PARTS = 5
LIVE_ADVICE = ADVICE | {
    Fit.GOOD: "These words pick out failures. Look at the pictures on the right: do they show what you said?",
    Fit.MATCHES_ONLY: "Pictures with this are found, but the AI is not wrong on them more often: other words for the same will not "
    "help; think of something else that sets the wrong pictures apart.",
}


class PhraseScore(View):
    """What a phrase says of a class, on the discovery half alone.

    Args:
        title: the class.
        phrase: the words, without blanks around them.
        score: Error Score with the best threshold.
        threshold: that threshold; null if none is better than guessing.
        held_out_score: Error Score of samples whose threshold was chosen on other samples of this half.
        p_value: chance of so good a held-out separation if the words had nothing to do with failures.
        matching: samples that the class with the phrase fits better than the class alone.
        fit: what became of the phrase.
        advice: what to do next, in words.
        n_samples: samples that were compared.
        offset: place of the first similarity in the order of the class's samples.
        similarities: base64 of little-endian float32, one a sample from `offset` on.
    """

    title: str
    phrase: str
    score: float
    threshold: float | None
    held_out_score: float
    p_value: float
    matching: Share
    fit: Fit
    advice: str
    n_samples: int
    offset: int
    similarities: str


@dataclass(frozen=True, kw_only=True)
class HeldOut:
    """A phrase on samples of the same half whose threshold was chosen on the others.

    Args:
        score: Error Score, all samples taken together.
        p_value: Fisher's exact test on the same counts.
    """

    score: float
    p_value: float


def phrase_score(workspace: Workspace, title: str, phrase: str, *, offset: int = 0, limit: int = MOST_SAMPLES) -> PhraseScore:
    """Score a phrase on the discovery samples of a class.

    Raises:
        DataError: if there is no such class, or its samples have no vectors.
        ModelError: if the embedder has no text side.
        NotEnoughDataError: if too few samples failed, or too few did not.
    """
    said = phrase.strip()
    members, similarities, words = similarities_to(workspace, title, said)
    failed = members.failed
    best = error_scores(similarities[None], failed)
    threshold = float(best.threshold[0])
    held_out = held_out_score(similarities, failed, class_parts(workspace, members))
    matching = share_matching(words)
    fit = fit_of(separates=held_out.p_value <= CERTAIN, matches=matching.value >= LEAST_MATCHING)
    return PhraseScore(
        title=title,
        phrase=said,
        score=float(best.score[0]),
        threshold=threshold if np.isfinite(threshold) else None,
        held_out_score=held_out.score,
        p_value=held_out.p_value,
        matching=matching,
        fit=fit,
        advice=LIVE_ADVICE[fit],
        n_samples=len(similarities),
        offset=offset,
        similarities=packed(similarities[offset : offset + limit], FLOAT32),
    )


def score_with(workspace: Workspace, title: str, phrase: str, threshold: float) -> float:
    """Return the Error Score of a phrase with a person's own threshold, on the discovery half."""
    members, similarities, _ = similarities_to(workspace, title, phrase.strip())
    return score_at(similarities.astype(np.float64), members.failed, threshold)


def similarities_to(workspace: Workspace, title: str, phrase: str) -> tuple[ClassMembers, FloatArray, FloatArray]:
    """Return the comparable samples of a class, their similarity to a phrase [n], and to the class with and without it [n, 2].

    Raises:
        NotEnoughDataError: if too few samples failed, or too few did not.
    """
    members, method = class_members(workspace, title), phrase_method(workspace)
    if members.vectors is None:
        raise DataError("The samples have no vectors that phrases could be compared with.", fix="Run `weakspot embed`.")
    note = obstacle(members.comparable, min_failures=method.min_failures, min_right=method.min_right)
    if note:
        raise NotEnoughDataError(note, where=title)
    vector = method.phrase_vectors([phrase], workspace.embed_texts)[phrase]
    words = workspace.embed_texts(matching_prompts(phrase, members.problem))
    # One pass over the vectors serves all three: reading them is what costs.
    found = members.vectors @ np.stack([vector, *words]).T
    return members, np.ascontiguousarray(found[:, 0]), found[:, 1:]


def phrase_method(workspace: Workspace) -> HypothesisDiscoverer:
    """Return the method that phrases of people are put through, as it is configured."""
    found = workspace.once("hypothesis method", lambda: replace(hypothesis_method(workspace.project.settings), space=JOINT))
    assert isinstance(found, HypothesisDiscoverer)
    return found


def class_parts(workspace: Workspace, members: ClassMembers) -> IntArray:
    """Return which of the fixed parts every comparable sample of a class is in."""
    title, seed = members.problem.title, workspace.project.settings.seed
    found = workspace.once(f"class parts {title}", lambda: parts_of(members.failed, seed=seed, title=title))
    assert isinstance(found, np.ndarray)
    return found


def parts_of(failed: BoolArray, *, seed: int, title: str) -> IntArray:
    """Return a part (0 to 4) for every sample, failures and others spread evenly; the same every time."""
    draws = generator(seed, "phrase parts", title)
    parts = np.zeros(len(failed), dtype=np.int64)
    for side in (True, False):
        places = draws.permutation(np.flatnonzero(failed == side))
        parts[places] = np.arange(len(places)) % N_PARTS
    return parts


def held_out_score(similarities: FloatArray, failed: BoolArray, parts: IntArray) -> HeldOut:
    """Return how well a phrase does on samples that had no part in choosing its threshold: each part is judged by the others.

    A threshold is only taken where the other parts hold failures and other samples; elsewhere nothing is meant.
    """
    inside = np.zeros(len(failed), dtype=np.bool_)
    for part in range(N_PARTS):
        own = parts == part
        others = ~own
        if own.any() and others.any():
            threshold = float(error_scores(similarities[others][None], failed[others]).threshold[0])
            inside[own] = similarities[own].astype(np.float64) >= threshold
    counts = int((inside & failed).sum()), int(inside.sum()), int((~inside & failed).sum()), int((~inside).sum())
    if failed.all() or not failed.any():
        return HeldOut(score=0.0, p_value=1.0)
    return HeldOut(score=float(inside[failed].mean() - inside[~failed].mean()), p_value=fisher_p(*counts))
