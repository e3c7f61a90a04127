"""What is known of a person's words once samples were asked, as records."""

from enum import StrEnum
from typing import Literal

from weakspot.core.evidence import Share
from weakspot.core.record import Record
from weakspot.core.slices import DataUse

CERTAIN = 0.05


class Fit(StrEnum):
    """What became of a phrase."""

    GOOD = "good"
    SEPARATES_ONLY = "separates but does not match"
    MATCHES_ONLY = "matches but does not separate"
    CANNOT_TELL = "cannot tell"

    @classmethod
    def _missing_(cls, value: object) -> "Fit | None":
        """Read what earlier versions wrote."""
        return cls.CANNOT_TELL if value == "neither matches nor separates" else None


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
        trust: how well the text side knows the words, from 0 to 1; None if it cannot say.
        tries: parts of the phrase that separate failures of the discovery half where the whole does not.
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
    trust: float | None = None
    tries: tuple[str, ...] = ()


class AskResult(Record):
    """Answers to the phrases asked now.

    Args:
        answers: in the order of the phrases.
        n_looks: different questions that these samples were asked so far, these ones among them.
        left: in words, what was asked and what a further question would need.
    """

    answers: tuple[PhraseAnswer, ...]
    n_looks: int
    left: str = ""
