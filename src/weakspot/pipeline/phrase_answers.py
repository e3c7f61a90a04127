"""What is known of a person's words once samples were asked, as records."""

from enum import StrEnum
from typing import Literal

from weakspot.core.evidence import Share
from weakspot.core.record import Record
from weakspot.core.slices import DataUse

LEAST_MATCHING = 0.02
CERTAIN = 0.05


class Fit(StrEnum):
    """What became of a phrase."""

    GOOD = "good"
    SEPARATES_ONLY = "separates but does not match"
    MATCHES_ONLY = "matches but does not separate"
    NEITHER = "neither matches nor separates"


ADVICE = {
    Fit.GOOD: "Samples above the threshold fail more often, also those that took no part in choosing it.",
    Fit.SEPARATES_ONLY: "It separates failures, but hardly any image looks like these words to the encoder, so it may go by "
    "something else: look at the images above the threshold and say what they show.",
    Fit.MATCHES_ONLY: "Images with this are found, but they do not fail more often on held-out samples: other words for the same "
    "will not help; think of something else that sets failures apart.",
    Fit.NEITHER: "Hardly any image looks like these words to the encoder, and they do not separate failures: say the same in "
    "other words (`red square` or `crimson` for `red`) before giving it up.",
}


RULE_ADVICE = {
    Fit.GOOD: "Such samples fail more often, on the held-out half too.",
    Fit.SEPARATES_ONLY: "Such samples fail more often, but there are hardly any.",
    Fit.MATCHES_ONLY: "There are such samples, but they do not fail more often on held-out ones: think of something else that "
    "sets failures apart.",
    Fit.NEITHER: "Hardly any sample of the class is meant by this: ask for a more frequent value, or for fewer at once.",
}


class Question(Record):
    """What is asked of the confirmation half.

    Args:
        phrase: a person's words.
        threshold: similarity from which on a sample is meant; None for the one that is best on the discovery half.
    """

    phrase: str
    threshold: float | None = None


class HalfAnswer(Record):
    """A phrase on one half of the samples.

    Args:
        samples: which half.
        error_score: with the threshold of the discovery half; on that half it is the best one.
        best_score: with the threshold that is best here.
        best_p: chance of such a best score when predictions are shuffled.
        inside: failures among the samples above the discovery half's threshold.
        outside: failures among the others.
    """

    samples: DataUse
    error_score: float
    best_score: float
    best_p: float
    inside: Share
    outside: Share


class PhraseAnswer(Record):
    """What is known of a phrase.

    Args:
        class_name: the class, as problems call it.
        phrase: the person's words.
        threshold: similarity from which on a sample is meant, chosen on the discovery half; None if none is better than guessing.
        discovery: where the threshold was chosen.
        confirmation: samples that took no part in it.
        p_value: Fisher's exact test on the confirmation half: that samples above the threshold fail no more often.
        p_after_looks: error rate, over everything that these samples were ever asked, at which it would just be a finding.
        matching: samples of both halves that are nearer to the class with the phrase than to the class alone.
        fit: what became of it.
        advice: what to do next, in words.
        compared_with: what the words were compared with.
        rule: who is meant, in a sentence; empty for what is similar to the words.
    """

    class_name: str
    phrase: str
    threshold: float | None
    discovery: HalfAnswer
    confirmation: HalfAnswer
    p_value: float
    p_after_looks: float
    matching: Share
    fit: Fit
    advice: str
    compared_with: Literal["embeddings", "columns"] = "embeddings"
    rule: str = ""


class HypothesisReport(Record):
    """Answers to the phrases asked now.

    Args:
        answers: in the order of the phrases.
        n_looks: different questions that these samples were asked so far, these ones among them.
        left: in words, what was asked and what a further question would need.
    """

    answers: tuple[PhraseAnswer, ...]
    n_looks: int
    left: str = ""


def fit_of(*, separates: bool, matches: bool) -> Fit:
    """Return what became of a phrase."""
    if separates:
        return Fit.GOOD if matches else Fit.SEPARATES_ONLY
    return Fit.MATCHES_ONLY if matches else Fit.NEITHER
