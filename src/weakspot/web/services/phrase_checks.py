"""A phrase put to the confirmation half: every such question is written down and counted; accepted, it becomes a slice."""

import numpy as np
from pydantic import JsonValue

from weakspot.core.errors import DataError, StoreError
from weakspot.core.evidence import Evidence, Verdict
from weakspot.core.failures import Side
from weakspot.core.rules import LinearRule
from weakspot.core.run import RunRecord
from weakspot.core.slices import FailureSlice, SliceName
from weakspot.discover.error_score import score_at
from weakspot.discover.hypothesis import BLANK, HypothesisDiscoverer
from weakspot.report import wording
from weakspot.run.phrase_questions import (
    ClassHalves,
    PhraseAnswer,
    ask_rules,
    asked,
)
from weakspot.run.preparation import CLIP
from weakspot.web.services.classes import (
    assistants_of,
    phrase_method,
    phrase_rule,
    phrase_score,
    similarities_to,
)
from weakspot.web.services.slice_editing import OWN_THRESHOLD, evidence_of, with_slices
from weakspot.web.services.view import View
from weakspot.web.services.workspace import Workspace
from weakspot.words.meanings import title_of_words

SAME_THRESHOLD = 5e-7


class PhraseCheck(PhraseAnswer, View):
    """What both halves say of a phrase.

    Args:
        title: the class, as pages call it.
        held_out_score: Error Score on parts of the discovery half that the threshold was not chosen on.
        n_looks: how many questions these samples were ever asked.
        left: in words, what was asked and what a further question would need.
    """

    title: str
    held_out_score: float
    n_looks: int
    left: str


def check_phrase(
    workspace: Workspace, title: str, phrase: str, *, threshold: float | None, by: str
) -> PhraseCheck:
    """Ask the confirmation half, and count that it was asked.

    Args:
        workspace: the project.
        title: the class.
        phrase: a person's words.
        threshold: the person's own threshold; None for the one that is best on the discovery half.
        by: who asks.
    """
    live = phrase_score(workspace, title, phrase, limit=0)
    rule = phrase_rule(workspace, live.phrase)
    own = own_threshold(threshold, live.threshold)
    with workspace.editing() as project:
        report = (
            asked(
                class_halves(workspace, title, is_compared=True),
                {live.phrase: own},
                assistants_of(workspace),
                workspace.ledger,
                seed=project.settings.seed,
                by=by,
            )
            if rule is None
            else ask_rules(
                class_halves(workspace, title, is_compared=False),
                {live.phrase: rule},
                workspace.ledger,
                by=by,
            )
        )
    (answer,) = report.answers
    return PhraseCheck(
        **dict(answer),
        title=title,
        held_out_score=live.held_out_score,
        n_looks=report.n_looks,
        left=report.left,
    )


def own_threshold(threshold: float | None, best: float | None) -> float | None:
    """Return a person's threshold, None if it is the best one anyway: that is the same question."""
    if threshold is None or (best is not None and abs(threshold - best) < SAME_THRESHOLD):
        return None
    return threshold


def class_halves(workspace: Workspace, title: str, *, is_compared: bool) -> ClassHalves:
    """Return the samples of a class on both halves, made once; nobody is shown the confirmation half by this.

    Args:
        workspace: the project.
        title: the class.
        is_compared: whether they are compared with phrases, rather than asked for values of columns.
    """
    halves = workspace.discovery, workspace.confirmation
    method, kind = phrase_method(workspace), "class" if is_compared else "rule"
    return workspace.once(
        f"{kind} halves {title}",
        lambda: ClassHalves.of(halves, workspace.criterion, title, method, is_compared=is_compared),
    )


class AcceptedPhrase(View):
    """The slice that a phrase became.

    Args:
        run_id: the run that it is part of.
        slice_id: the slice.
        title: the slice as people read it.
        verdict: what the evidence allows to say.
        words: the same in plain words.
        sentences: finding, proof and cause in words.
        evidence: what was measured on the confirmation half.
        phrase: the words.
        threshold: similarity from which on a sample is a member.
        score: Error Score on the discovery half.
        held_out_score: Error Score on parts of the discovery half that the threshold was not chosen on.
        same_as: the slice with nearly the same members that is tested in its place.
    """

    run_id: str
    slice_id: str
    title: str
    verdict: Verdict
    words: str
    sentences: list[str]
    evidence: Evidence
    phrase: str
    threshold: float
    score: float
    held_out_score: float
    same_as: str | None


def accept_phrase(
    workspace: Workspace,
    title: str,
    phrase: str,
    *,
    threshold: float | None,
    by: str,
    reason: str = "",
) -> AcceptedPhrase:
    """Make a slice of a phrase, or find the one that it is already, and prove the run anew.

    Args:
        workspace: the project.
        title: the class.
        phrase: a person's words.
        threshold: the person's own threshold; None for the one that is best on the discovery half.
        by: who accepts it.
        reason: in that person's words.

    Raises:
        DataError: if no threshold separates anything, or nothing lies above the one that was given.
    """
    live = phrase_score(workspace, title, phrase, limit=0)
    own = own_threshold(threshold, live.threshold)
    cut = live.threshold if own is None else own
    if cut is None:
        raise DataError(
            "These words do not pick out failures at any threshold.", fix="Try other words."
        )
    found = phrase_slice(workspace, title, live.phrase, cut, is_own=own is not None)
    record = with_slices(workspace, [found], by=by, reason=reason)
    entry = evidence_of(record, found.slice_id)
    if entry is None:
        raise StoreError("The slice was not measured.", where=record.run_id)
    return AcceptedPhrase(
        run_id=record.run_id,
        slice_id=found.slice_id,
        title=found.title,
        verdict=entry.verdict,
        words=_verdict_words(entry, record),
        sentences=_sentences(found, entry),
        evidence=entry,
        phrase=live.phrase,
        threshold=cut,
        score=found.strength or 0.0,
        held_out_score=live.held_out_score,
        same_as=entry.same_as,
    )


def phrase_slice(
    workspace: Workspace, title: str, phrase: str, threshold: float, *, is_own: bool
) -> FailureSlice:
    """Return the slice of the samples of a class that are at least so similar to a phrase.

    Args:
        workspace: the project.
        title: the class.
        phrase: the words.
        threshold: similarity from which on a sample is a member.
        is_own: whether a person chose the threshold, rather than the best one of the discovery half being taken.
    """
    members, similarities, _ = similarities_to(workspace, title, phrase)
    exact = similarities.astype(np.float64)
    n_found = int((exact >= threshold).sum())
    if n_found in (0, len(exact)):
        raise DataError(
            "A slice must hold some samples of the class and leave some out.",
            where="threshold",
            given=threshold,
            fix="Move the threshold.",
        )
    strength = score_at(exact, members.failed, threshold)
    rule = phrase_rule(workspace, phrase)
    parameters: dict[str, JsonValue] = {"phrase": phrase}
    name = phrase
    if rule is None:
        method = phrase_method(workspace)
        prompts = [template.replace(BLANK, phrase) for template in method.templates]
        direction = method.phrase_directions([phrase], workspace.embed_texts, members.problem)[
            phrase
        ]
        rule = LinearRule(
            space=CLIP,
            encoder_id=workspace.samples.space(CLIP).encoder_id,
            direction=tuple(direction.tolist()),
            threshold=threshold,
        )
        parameters |= {"prompts": [*prompts], **({OWN_THRESHOLD: True} if is_own else {})}
        name = prompts[0]
    problem = members.problem
    words = title_of_words(phrase, problem.class_name) if problem.side is not Side.ABSENT else ""
    own = SliceName(
        phrase=name,
        contrast=phrase,
        title=words,
        score=strength,
        describer=HypothesisDiscoverer.method,
    )
    return FailureSlice(
        class_name=problem.class_name,
        side=problem.side,
        rule=rule,
        method=HypothesisDiscoverer.method,
        parameters=parameters,
        found_on=workspace.discovery_use,
        strength=strength,
        n_found=n_found,
        names=(own,),
    )


def _verdict_words(entry: Evidence, record: RunRecord) -> str:
    words = wording.VERDICT_WORDS[entry.verdict]
    if entry.same_as is None:
        return words
    other = next(
        (found.title for found in record.slices if found.slice_id == entry.same_as), "another slice"
    )
    return f"{words} “{other}”"


def _sentences(found: FailureSlice, entry: Evidence) -> list[str]:
    sentences = [wording.finding_sentence(found, entry)] if entry.n_inside else []
    if entry.verdict in (Verdict.CONFIRMED, Verdict.NOT_CONFIRMED):
        sentences.append(wording.proof_sentence(entry))
    if entry.verdict is Verdict.CONFIRMED:
        sentences += wording.cause_sentences(entry)
    return sentences
