"""What to do, in sentences that the terminal prints as they are."""

from weakspot.core.evidence import Interval
from weakspot.repair.advice.kinds import ImageKind
from weakspot.repair.advice.measured import MeasuredRepair
from weakspot.repair.advice.wishes import Wish
from weakspot.report.wording import points

LEAST_TOLD = 0.005


def gain_words(interval: Interval) -> str:
    """Return an interval of a gain in points.

    >>> gain_words(Interval(low=0.4, high=0.75)), gain_words(Interval(low=-0.05, high=0.12))
    ('+40 to +75 points', '−5 to +12 points')
    """
    return f"{points(interval.low)} to {points(interval.high)} points"


def known_words(kind: ImageKind, repair: MeasuredRepair | None) -> str:
    """Return why labels are needed: what training has of the kind, and what weighing it differently did."""
    n_known = kind.n_known
    if n_known is None:
        return "training images are not known here"
    if not n_known:
        return "retraining cannot help: 0 such training images"
    have = f"you have {n_known:,} such training image{'' if n_known == 1 else 's'}"
    if repair is not None and not repair.n_added and not repair.helps:
        return f"{have}, weighing them more did not help"
    return have


def number_words(wish: Wish) -> str:
    if wish.n_wanted is None:
        return "some"
    is_rising = wish.forecast is not None and wish.forecast.is_rising
    return f"at least {wish.n_wanted:,}" if is_rising else f"about {wish.n_wanted:,}"


def expectation(wish: Wish) -> str:
    """Return the expected gain and what it costs elsewhere, or why neither can be said."""
    if wish.forecast is None:
        return f"the gain cannot be predicted: {wish.why_none}"
    told = f"expected {gain_words(wish.forecast.interval)} on these images"
    if abs(wish.forecast.elsewhere) >= LEAST_TOLD:
        told += f", about {points(wish.forecast.elsewhere)} on others"
    return told


def label_sentence(wish: Wish, file: str, repair: MeasuredRepair | None) -> str:
    kind, choice = wish.kind, wish.choice
    n_ready, n_listed = int(choice.is_labelled.sum()), len(choice.rows)
    do, ready = ("Add", ", labelled already") if n_ready == n_listed else ("Label", "")
    if 0 < n_ready < n_listed:
        ready = f", {n_ready:,} of them labelled already"
    more = " more" if kind.n_known else ""
    return (
        f"{kind.title}: {known_words(kind, repair)}. {do} {number_words(wish)}{more}: {file} "
        f"(first {n_listed:,} chosen{ready}), {expectation(wish)}"
    )


def collect_sentence(wish: Wish, file: str, repair: MeasuredRepair | None) -> str:
    kind, choice = wish.kind, wish.choice
    missing = f"none of {choice.n_pool:,} pool images fits" if choice.n_pool else "no pool"
    more = " more" if kind.n_known else ""
    return (
        f"{kind.title}: {known_words(kind, repair)}; {missing}: collect {number_words(wish)}{more}, "
        f"see {file}; {expectation(wish)}"
    )


def retrain_sentence(kind: ImageKind, repair: MeasuredRepair) -> str:
    change = repair.change
    counts = f"{change.right_before:,} to {change.right_after:,} of {change.n_samples:,} test images right"
    how = f"{points(change.change)} points ({gain_words(repair.interval)})"
    return (
        f"{kind.title}: retraining the last layer ({repair.plan.repairer}) helps: {counts}, {how}"
    )


def predicted_retrain_sentence(kind: ImageKind, interval: Interval) -> str:
    return (
        f"{kind.title}: retraining the last layer with more weight on your {kind.n_known or 0:,} such training images "
        f"may help: expected {gain_words(interval)} on these images, not measured yet"
    )


def labels_sentence(kind: ImageKind, n_suspect: int, file: str, *, is_flagged: bool) -> str:
    begin = "look at the labels first" if is_flagged else "some labels may be wrong"
    return f"{kind.title}: {begin}: {n_suspect:,} suspect ones in {file}"


def generate_sentence(kind: ImageKind) -> str:
    return (
        f"{kind.title}: no such images to be had? Generate some and train on them; "
        "what it brings is measured, not promised"
    )


def accept_sentence(wish: Wish, repair: MeasuredRepair | None) -> str:
    """Return how to live with it: the line for policy.toml lets it pass and holds everything else; first why, if nothing helps."""
    kind, forecast = wish.kind, wish.forecast
    gate = f"accept the limit and gate on it, in policy.toml: {policy_line(kind)}"
    if wish.may_help or forecast is None:
        return f"{kind.title}: or {gate}"
    why = (
        f"would mostly move errors ({gain_words(forecast.interval)} here, about {points(forecast.elsewhere)} on others)"
        if wish.moves_errors
        else f"are not expected to help ({gain_words(forecast.interval)})"
    )
    return f"{kind.title}: {known_words(kind, repair)}; {forecast.n_wanted:,} more {why}: {gate}"


def policy_line(kind: ImageKind) -> str:
    if kind.slice_ is not None:
        return f'[[accepted]] slice = "{kind.subject}", with reason and until'
    right = 1 - kind.n_failed / kind.n_evaluated if kind.n_evaluated else 0.0
    name = kind.class_name.replace("\\", "\\\\").replace('"', '\\"')
    return f'[class_accuracy] per_class = {{ "{name}" = {right:.2f} }}'
