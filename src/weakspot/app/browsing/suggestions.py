"""Words to start from: keywords of a class with the largest Error Scores on the discovery half."""

from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa

from weakspot.app.assisting import CAPTION_COLUMN
from weakspot.app.browsing.background import made_beside
from weakspot.app.browsing.class_samples import ClassMembers, class_members
from weakspot.app.browsing.phrases import phrase_method
from weakspot.app.browsing.view import View
from weakspot.app.browsing.workspace import Workspace
from weakspot.core.arrays import FloatArray, IntArray
from weakspot.core.class_vectors import obstacle
from weakspot.core.error_score import phrase_scores
from weakspot.core.seeding import generator
from weakspot.discover.keywords.candidates import caption_candidates, vocabulary_candidates

TOP = 10
MOST_CAPTIONED = 2000
MOST_ASKED = 200
MOST_WORDS = 3
FEWEST_CAPTIONS = 5
MOST_KEYWORDS = 300
WAIT_SECONDS = 2.0
WORDS_AT_ONCE = 8
CAPTIONS, VOCABULARY = "captions", "vocabulary"


class SuggestedWord(View):
    """A keyword.

    Args:
        words: as a person would type them.
        score: Error Score on the discovery half, with the threshold that is best there.
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
    words: list[SuggestedWord]
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
        found = made_beside(workspace, name, lambda: _from_captions(workspace, members), patience=WAIT_SECONDS)
        is_complete = found is not None
        if found:
            return Suggestions(title=title, words=found, source=CAPTIONS, is_complete=True)
    words = workspace.once(f"vocabulary keywords {title}", lambda: vocabulary_words(workspace, members))
    assert isinstance(words, list)
    return Suggestions(title=title, words=words, source=VOCABULARY, is_complete=is_complete)


def vocabulary_words(workspace: Workspace, members: ClassMembers) -> list[SuggestedWord]:
    """Return the best words of the built-in vocabulary."""
    prompts = vocabulary_vectors(workspace)
    return _best(members, list(prompts), np.stack(list(prompts.values())))


def vocabulary_vectors(workspace: Workspace) -> Mapping[str, FloatArray]:
    """Return the unit vector [d] of every word of the built-in vocabulary, put to the encoder as a person's words are."""
    found = workspace.once("vocabulary vectors", lambda: _as_typed(workspace, [one.keyword for one in vocabulary_candidates()]))
    assert isinstance(found, dict)
    return found


def has_text_side(workspace: Workspace) -> bool:
    """Return whether phrases can be compared with samples."""
    return workspace.prepared.assistants.embed_texts is not None


def _can_score(workspace: Workspace, members: ClassMembers) -> bool:
    method = phrase_method(workspace)
    is_thin = obstacle(members.comparable, min_failures=method.min_failures, min_right=method.min_right)
    return has_text_side(workspace) and members.vectors is not None and not is_thin


def _from_captions(workspace: Workspace, members: ClassMembers) -> list[SuggestedWord]:
    """Return the best words of captions, empty if there are too few of them."""
    problem = members.comparable
    places = _captioned(workspace, members)
    captions = workspace.prepared.assistants.captions
    texts = [""] * len(problem.rows)
    for place, text in zip(places, captions(problem.rows[places]) if captions else [], strict=True):
        texts[int(place)] = text
    found = caption_candidates(texts, problem, max_words=MOST_WORDS, min_captions=FEWEST_CAPTIONS, most=MOST_KEYWORDS)
    if not found:
        return []
    vectors = _as_typed(workspace, [one.keyword for one in found])
    return _best(members, list(vectors), np.stack(list(vectors.values())))


def _captioned(workspace: Workspace, members: ClassMembers) -> IntArray:
    """Return the places of samples whose captions are read, half of them failures; few where a model has to be asked."""
    dataset = workspace.samples.dataset
    is_given = CAPTION_COLUMN in dataset.metadata_names and not pa.types.is_null(dataset.metadata(CAPTION_COLUMN).type)
    most = MOST_CAPTIONED if is_given else MOST_ASKED
    failed = members.failed
    if len(failed) <= most:
        return np.arange(len(failed))
    draws = generator(workspace.project.settings.seed, "suggestions", members.problem.title)
    wrong, right = (draws.permutation(np.flatnonzero(failed == side)) for side in (True, False))
    n_wrong = max(min(most // 2, len(wrong)), most - len(right))
    return np.sort(np.concatenate([wrong[:n_wrong], right[: most - n_wrong]]))


def _as_typed(workspace: Workspace, words: Sequence[str]) -> dict[str, FloatArray]:
    """Return vectors of words exactly as if a person had typed them, so that a suggestion keeps its score when it is used."""
    method, found = phrase_method(workspace), dict[str, FloatArray]()
    for start in range(0, len(words), WORDS_AT_ONCE):
        # Few at a time: somebody who types a phrase meanwhile waits for one such piece at most.
        found |= method.phrase_vectors(words[start : start + WORDS_AT_ONCE], workspace.embed_texts)
    return found


def _best(members: ClassMembers, words: Sequence[str], prompts: FloatArray) -> list[SuggestedWord]:
    assert members.vectors is not None
    scores = phrase_scores(prompts, members.vectors, members.failed).score
    order = sorted(range(len(words)), key=lambda place: (-round(float(scores[place]), 6), len(words[place]), words[place]))
    return [SuggestedWord(words=words[place], score=float(scores[place])) for place in order[:TOP] if scores[place] > 0]
