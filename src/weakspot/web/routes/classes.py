"""Class view: right and wrong samples, phrases and their scores."""

import unicodedata
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Query
from pydantic import AfterValidator, Field, StringConstraints

from weakspot.web.server_parts import (
    Annotator,
    Anyone,
    ChangingNow,
    Parts,
    ProjectReader,
    ServerParts,
    slice_subject,
)
from weakspot.web.services.classes import (
    MAX_SAMPLES,
    ClassList,
    ClassSamples,
    PhraseScore,
    Suggestions,
    class_list,
    class_samples,
    phrase_score,
    score_with,
    suggestions,
)
from weakspot.web.services.phrase_checks import (
    AcceptedPhrase,
    PhraseCheck,
    accept_phrase,
    check_phrase,
)
from weakspot.web.services.slice_editing import n_decisions
from weakspot.web.services.studies import PhraseFigures
from weakspot.web.services.view import View
from weakspot.web.state.store import Person, Role
from weakspot.web.state.studies import (
    PhraseView,
    keep_phrase,
    mark_accepted,
    phrases_of,
    require_class,
    study_of,
)

router = APIRouter(prefix="/api", tags=["classes"])

MAX_PHRASE_LENGTH = 300
MAX_TITLE_LENGTH = 1000
MAX_PLACE = 2**53


def _plain(text: str) -> str:
    """Refuse characters that no person types: they mean nothing to the encoder, and some databases cannot hold them."""
    if any(unicodedata.category(letter) in ("Cc", "Cs") for letter in text):
        raise ValueError("A phrase is one line of text.")
    return text


PhraseText = Annotated[
    str,
    StringConstraints(strip_whitespace=True, min_length=1, max_length=MAX_PHRASE_LENGTH),
    AfterValidator(_plain),
]
Title = Annotated[
    str,
    Query(max_length=MAX_TITLE_LENGTH, description="the class, as the list of classes calls it"),
]
Study = Annotated[
    str | None,
    Query(max_length=100, description="the study in which this is looked at; none by default"),
]
Threshold = Annotated[float, Field(ge=-2.0, le=2.0, allow_inf_nan=False)]
Place = Annotated[int, Query(ge=0, le=MAX_PLACE)]
Limit = Annotated[int, Query(ge=1, le=MAX_SAMPLES)]


class PhraseRequest(View):
    """A phrase about a class.

    Args:
        title: the class.
        phrase: completes "The AI is often wrong on images that have ...".
        study: the study in which it is submitted; none by default.
        threshold: the person's own threshold; null for the one that is best on the discovery half.
        source: where the words come from: typed, a suggestion as it was clicked, or one that was edited.
    """

    title: str = Field(max_length=MAX_TITLE_LENGTH)
    phrase: PhraseText
    study: str | None = Field(default=None, max_length=100)
    threshold: Threshold | None = None
    source: Literal["own", "suggestion", "edited", "not known"] = "not known"


class ScoreRequest(PhraseRequest):
    """A phrase that is being typed.

    Args:
        is_submitted: whether to keep it in the history.
        offset: place of the first similarity that is wanted.
        limit: how many similarities are wanted.
    """

    is_submitted: bool = False
    offset: int = Field(default=0, ge=0, le=MAX_PLACE)
    limit: int = Field(default=MAX_SAMPLES, ge=0, le=MAX_SAMPLES)


class AcceptRequest(PhraseRequest):
    """A phrase that shall become a slice.

    Args:
        reason: why, in the person's words.
    """

    reason: str = Field(default="", max_length=2000)


class PhraseHistory(View):
    """Phrases, newest first.

    Args:
        phrases: with what was found out of each.
        left: in words, what held-out samples were asked so far and what is left to spend.
    """

    phrases: list[PhraseView]
    left: str


@router.get("/classes")
def classes(_person: ProjectReader, parts: Parts) -> ClassList:
    """Return all classes, most promising first."""
    return class_list(parts.workspace)


@router.get("/classes/samples")
def samples(
    title: Title,
    person: Anyone,
    parts: Parts,
    study: Study = None,
    offset: Place = 0,
    limit: Limit = MAX_SAMPLES,
) -> ClassSamples:
    """Return the samples of a class that people look at."""
    require_class(parts.state, person, study, title)
    return class_samples(parts.workspace, title, offset=offset, limit=limit)


@router.get("/classes/suggestions")
def suggest(title: Title, person: Anyone, parts: Parts, study: Study = None) -> Suggestions:
    """Return words to start from."""
    require_class(parts.state, person, study, title)
    if study is not None and not study_of(parts.state, person, study).options.shows_suggestions:
        return Suggestions(title=title, words=[], source="", is_complete=True)
    return suggestions(parts.workspace, title)


@router.get("/classes/history")
def history(title: Title, person: Anyone, parts: Parts, study: Study = None) -> PhraseHistory:
    """Return the phrases of a class so far."""
    require_class(parts.state, person, study, title)
    return PhraseHistory(
        phrases=phrases_of(parts.state, person, study_id=study, class_title=title),
        left=parts.workspace.ledger.standing().sentence,
    )


@router.post("/classes/phrase")
def phrase(request: ScoreRequest, person: Anyone, parts: Parts) -> PhraseScore:
    """Score a phrase on the discovery half; called while it is typed, and kept only when it is submitted."""
    require_class(parts.state, person, request.study, request.title)
    found = phrase_score(
        parts.workspace, request.title, request.phrase, offset=request.offset, limit=request.limit
    )
    if request.is_submitted and person.role is not Role.VIEWER and not parts.is_read_only:
        own, score = request.threshold, found.score
        if own is not None:
            score = score_with(parts.workspace, request.title, found.phrase, own)
        _keep(request, found, person, parts, score=score, fit=found.fit.value)
    return found


def _keep(
    request: PhraseRequest,
    found: PhraseScore | PhraseCheck | AcceptedPhrase,
    person: Person,
    parts: ServerParts,
    **figures: Any,
) -> PhraseView:
    """Write a phrase into the history, with what was found out of it."""
    said = PhraseFigures(
        class_title=request.title,
        phrase=found.phrase,
        threshold=request.threshold,
        held_out_score=found.held_out_score,
        source=request.source,
        **figures,
    )
    return keep_phrase(parts.state, person, said, study_id=request.study)


@router.post("/classes/check")
def check(request: PhraseRequest, person: Annotator, parts: Parts) -> PhraseCheck:
    """Ask the confirmation half about a phrase: this counts."""
    require_class(parts.state, person, request.study, request.title)
    found = check_phrase(
        parts.workspace, request.title, request.phrase, threshold=request.threshold, by=person.name
    )
    figures = {
        "score": found.discovery.error_score,
        "confirmed_score": found.confirmation.error_score,
        "p_value": found.p_value,
        "fit": found.fit.value,
    }
    _keep(request, found, person, parts, **figures)
    return found


@router.post("/classes/accept")
def accept(
    request: AcceptRequest, person: Annotator, parts: Parts, changing: ChangingNow
) -> AcceptedPhrase:
    """Make a phrase a slice, with its evidence; doing it twice changes nothing."""
    require_class(parts.state, person, request.study, request.title)
    with changing.alone():
        decided = n_decisions(parts.workspace)
        found = accept_phrase(
            parts.workspace,
            request.title,
            request.phrase,
            threshold=request.threshold,
            by=person.name,
            reason=request.reason,
        )
        if n_decisions(parts.workspace) != decided:
            sentence = f"Accepted “{found.phrase}” as a slice of {request.title}"
            ids = {"run": found.run_id, "back": [], "away": [found.slice_id]}
            changing.note("slices", slice_subject(found.slice_id), sentence, **ids)
    _remember(request, found, person, parts)
    return found


def _remember(
    request: AcceptRequest, found: AcceptedPhrase, person: Annotator, parts: Parts
) -> None:
    """Mark the phrase of the history that was accepted; one that was never submitted is written down first."""
    known = phrases_of(parts.state, person, study_id=request.study, class_title=request.title)
    own = [
        one for one in known if one.phrase == found.phrase and one.threshold == request.threshold
    ]
    if any(one.slice_id == found.slice_id for one in own):
        return
    kept = next((one for one in own if one.slice_id is None), None)
    if kept is None:
        kept = _keep(request, found, person, parts, score=found.score)
    mark_accepted(parts.state, kept.phrase_id, found.slice_id)
