"""A phrase put to the confirmation half: every such question is written down and counted."""

from weakspot.app.browsing.phrases import phrase_method, phrase_score
from weakspot.app.browsing.view import View
from weakspot.app.browsing.workspace import Workspace
from weakspot.app.hypothesising import ClassHalves, Fit, PhraseAnswer, Question, asked
from weakspot.core.evidence import Share

SAME_THRESHOLD = 5e-7


class HalfCheck(View):
    """A phrase on one half.

    Args:
        error_score: with the threshold that was asked about.
        inside: failures among the samples at or above the threshold.
        outside: failures among the others.
        n_samples: samples of the class there.
    """

    error_score: float
    inside: Share
    outside: Share
    n_samples: int


class PhraseCheck(View):
    """What both halves say of a phrase.

    Args:
        title: the class.
        phrase: the words.
        threshold: similarity from which on a sample is meant; null if none is better than guessing.
        discovery: where the threshold was chosen.
        confirmation: samples that nobody looked at.
        score: Error Score on the discovery half, with this threshold.
        held_out_score: Error Score on parts of the discovery half that the threshold was not chosen on.
        p_value: chance of such a difference on the confirmation half if there were none.
        p_after_looks: the same, times the number of questions that were ever put to it.
        n_looks: that number.
        fit: what became of the phrase.
        advice: what to do next, in words.
    """

    title: str
    phrase: str
    threshold: float | None
    discovery: HalfCheck
    confirmation: HalfCheck
    score: float
    held_out_score: float
    p_value: float
    p_after_looks: float
    n_looks: int
    fit: Fit
    advice: str


def check_phrase(workspace: Workspace, title: str, phrase: str, *, threshold: float | None, by: str) -> PhraseCheck:
    """Ask the confirmation half, and count that it was asked.

    Args:
        workspace: the project.
        title: the class.
        phrase: a person's words.
        threshold: the person's own threshold; None for the one that is best on the discovery half.
        by: who asks.
    """
    live = phrase_score(workspace, title, phrase, limit=0)
    both = class_halves(workspace, title)
    question = Question(phrase=live.phrase, threshold=own_threshold(threshold, live.threshold))
    with workspace.editing() as project:
        seed = project.settings.seed
        report = asked(both, [question], workspace.embed_texts, project.store, seed=seed, by=by)
    (answer,) = report.answers
    return PhraseCheck(
        title=title,
        phrase=answer.phrase,
        threshold=answer.threshold,
        discovery=_half(answer, is_confirmation=False),
        confirmation=_half(answer, is_confirmation=True),
        score=answer.discovery.error_score,
        held_out_score=live.held_out_score,
        p_value=answer.p_value,
        p_after_looks=answer.p_after_looks,
        n_looks=report.n_looks,
        fit=answer.fit,
        advice=answer.advice,
    )


def own_threshold(threshold: float | None, best: float | None) -> float | None:
    """Return a person's threshold, None if it is the best one anyway: that is the same question."""
    if threshold is None or (best is not None and abs(threshold - best) < SAME_THRESHOLD):
        return None
    return threshold


def class_halves(workspace: Workspace, title: str) -> ClassHalves:
    """Return the samples of a class on both halves, made once; nobody is shown the confirmation half by this."""
    halves = workspace.discovery, workspace.confirmation
    method = phrase_method(workspace)
    made = workspace.once(f"class halves {title}", lambda: ClassHalves.of(halves, workspace.criterion, title, method))
    assert isinstance(made, ClassHalves)
    return made


def _half(answer: PhraseAnswer, *, is_confirmation: bool) -> HalfCheck:
    half = answer.confirmation if is_confirmation else answer.discovery
    return HalfCheck(
        error_score=half.error_score,
        inside=half.inside,
        outside=half.outside,
        n_samples=half.inside.total + half.outside.total,
    )
