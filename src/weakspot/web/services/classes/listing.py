"""All classes, those first of which something can be learnt, and words to start from."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa

from weakspot.core.arrays import FloatArray, IntArray
from weakspot.core.class_embeddings import obstacle
from weakspot.core.error_score import phrase_scores
from weakspot.core.errors import WeakspotError
from weakspot.core.evidence import Share
from weakspot.core.failures import ClassProblem
from weakspot.core.run import RunRecord
from weakspot.core.seeding import generator
from weakspot.discover.keywords.candidates import caption_candidates, vocabulary_candidates
from weakspot.pipeline.models.assistants import CAPTION_COLUMN
from weakspot.pipeline.preparation import CLIP
from weakspot.pipeline.suggestions import SuggestionSource
from weakspot.pipeline.withheld import withhold
from weakspot.web.services.classes.phrases import phrase_method
from weakspot.web.services.classes.samples import ClassMembers, class_members
from weakspot.web.services.view import View
from weakspot.web.services.workspace import Workspace, make_beside

MOST_CAPTIONED = 2000
MOST_ASKED = 200
MOST_WORDS = 3
FEWEST_CAPTIONS = 5
MOST_KEYWORDS = 300
WAIT_SECONDS = 2.0
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
) -> list[SuggestedWord]:
    """Return suggestions from the vocabulary, the user's columns and words of captions."""
    assistants = workspace.prepared.assistants
    source = SuggestionSource(
        samples=withhold(workspace.samples, workspace.project.settings.repair.groups),
        problem=members.comparable,
        embeddings=members.embeddings,
        method=phrase_method(workspace),
        assistants=replace(assistants, embed_texts=workspace.embed_texts),
        seed=workspace.project.settings.seed,
    )
    return [SuggestedWord(words=one.words, score=one.score) for one in source.suggest(spoken)]


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


def _from_captions(workspace: Workspace, members: ClassMembers) -> list[SuggestedWord]:
    problem = members.comparable
    places = _captioned(workspace, members)
    captions = workspace.prepared.assistants.captions
    texts = [""] * len(problem.rows)
    for place, text in zip(places, captions(problem.rows[places]) if captions else [], strict=True):
        texts[int(place)] = text
    found = caption_candidates(
        texts, problem, max_words=MOST_WORDS, min_captions=FEWEST_CAPTIONS, most=MOST_KEYWORDS
    )
    words = [one.keyword for one in found]
    return suggested_words(workspace, members, words) if words else []


def _captioned(workspace: Workspace, members: ClassMembers) -> IntArray:
    """Return the places of samples whose captions are read, half of them failures; few where a model has to be asked."""
    dataset = workspace.samples.dataset
    is_given = CAPTION_COLUMN in dataset.metadata_names and not pa.types.is_null(
        dataset.metadata(CAPTION_COLUMN).type
    )
    most = MOST_CAPTIONED if is_given else MOST_ASKED
    failed = members.failed
    if len(failed) <= most:
        return np.arange(len(failed))
    draws = generator(workspace.project.settings.seed, "suggestions", members.problem.title)
    wrong, right = (draws.permutation(np.flatnonzero(failed == side)) for side in (True, False))
    n_wrong = max(min(most // 2, len(wrong)), most - len(right))
    return np.sort(np.concatenate([wrong[:n_wrong], right[: most - n_wrong]]))


LEAST_ACCURACY, MOST_ACCURACY = 0.2, 0.8
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
    accuracy = Share.of(problem.n_right, n_samples, effective=problem.worth * n_samples)
    return ClassRow(
        title=problem.title,
        n_samples=len(problem.rows),
        n_failed=problem.n_failed,
        accuracy=accuracy,
        best_score=best_score,
        is_promising=LEAST_ACCURACY <= accuracy.value <= MOST_ACCURACY,
        findings=findings,
    )


def _order(row: ClassRow) -> tuple[bool, float, int, str]:
    return not row.is_promising, -(row.best_score or 0.0), -row.n_failed, row.title
