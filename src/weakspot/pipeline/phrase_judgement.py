"""What may be said of a phrase: it fits and separates, it fits and does not, or it cannot be told, and then why and with which numbers."""

from dataclasses import dataclass
from math import sqrt

from weakspot.core.assistants import LEAST_TRUST
from weakspot.core.evidence import Share
from weakspot.core.statistics import fisher_p
from weakspot.pipeline.phrase_answers import CERTAIN, Fit

LEAST_MATCHING = 0.02
LEAST_SAMPLES = 5
LARGEST_OVERLOOKED = 0.2


@dataclass(frozen=True, kw_only=True)
class Wording:
    """How the answers are put.

    Args:
        good: fits and separates.
        separates_only: separates, and hardly any sample fits.
        matches_only: fits and does not separate.
        few_match: cannot tell because hardly any sample fits; with {count} and {total}.
        what: what the samples inside are called.
    """

    good: str
    separates_only: str
    matches_only: str
    few_match: str
    what: str


PHRASE = Wording(
    good="Samples above the threshold fail more often, also those that took no part in choosing it.",
    separates_only="It separates failures, but {count} of {total} images look like these words to the encoder, so it may go by "
    "something else: look at the images above the threshold and say what they show.",
    matches_only="Images with this are found, but on held-out samples they do not fail clearly more often{bound}: think of "
    "something else that sets failures apart.",
    few_match="To the encoder {count} of {total} samples look like these words, too few to say whether they fail more often: "
    "say the same in other words (`red square` or `crimson` for `red`).",
    what="held-out samples above the threshold",
)
RULE = Wording(
    good="Such samples fail more often, on the held-out half too.",
    separates_only="Such samples fail more often, but there are hardly any: {count} of {total}.",
    matches_only="There are such samples, but held-out ones do not fail clearly more often{bound}: think of something else that "
    "sets failures apart.",
    few_match="{count} of {total} samples of the class are meant by this, too few to say whether they fail more often: ask for a "
    "more frequent value, or for fewer at once.",
    what="such held-out samples",
)


@dataclass(frozen=True, kw_only=True)
class Judgement:
    """What became of a phrase, and what to do next in words."""

    fit: Fit
    advice: str


def matches(matching: Share) -> bool:
    """Return whether enough samples fit a phrase to speak of them."""
    return matching.count >= LEAST_SAMPLES and matching.value >= LEAST_MATCHING


def judge(
    *,
    separates: bool,
    matching: Share,
    inside: Share | None,
    outside: Share | None,
    trust: float | None = None,
    wording: Wording = PHRASE,
) -> Judgement:
    """Say what is known of a phrase, and nothing stronger.

    Args:
        separates: whether it is a finding.
        matching: samples that the phrase fits.
        inside: failures among held-out samples above the threshold; None if no threshold is better than guessing.
        outside: failures among the others.
        trust: how well the text side knows the words; None if it cannot say.
        wording: how the answers are put.
    """
    counts = {"count": matching.count, "total": matching.total}
    is_known = trust is None or trust >= LEAST_TRUST
    if separates:
        good = matches(matching) and is_known
        return Judgement(
            fit=Fit.GOOD if good else Fit.SEPARATES_ONLY,
            advice=wording.good if good else wording.separates_only.format(**counts),
        )
    reason = "" if is_known else unknown_words(trust or 0.0)
    reason = reason or ("" if matches(matching) else wording.few_match.format(**counts))
    bound = ""
    if inside is not None and outside is not None and not reason:
        reason = _too_few(inside, outside, wording.what)
        bound = f" ({100 * largest_difference(inside, outside):.0f} points at most, at 95 %)"
    if reason:
        return Judgement(fit=Fit.CANNOT_TELL, advice=reason)
    return Judgement(fit=Fit.MATCHES_ONLY, advice=wording.matches_only.format(bound=bound))


def unknown_words(trust: float) -> str:
    return (
        f"The text side does not know these words well enough to say (trust {trust:.2f} of 1, {LEAST_TRUST} is needed): say it in "
        "plainer words, or ask for a value of a column."
    )


def largest_difference(inside: Share, outside: Share) -> float:
    """Return the upper end of Newcombe's interval of how much more often samples inside fail."""
    above, below = inside.interval.high - inside.value, outside.value - outside.interval.low
    return inside.value - outside.value + sqrt(above**2 + below**2)


def _too_few(inside: Share, outside: Share, what: str) -> str:
    n_failed = inside.count + outside.count
    most = min(inside.total, n_failed)
    if fisher_p(most, inside.total, n_failed - most, outside.total) > CERTAIN:
        return f"There are {inside.total} {what}: even if all of them failed, that would prove nothing. Ask again with more samples."
    largest = largest_difference(inside, outside)
    if largest > LARGEST_OVERLOOKED:
        return (
            f"The {inside.total} {what} fail {100 * inside.value:.0f} %, the others {100 * outside.value:.0f} %: no difference is "
            f"proven, and up to {100 * largest:.0f} points cannot be ruled out with so few."
        )
    return ""
