"""What is known of a cause, in sentences."""

from weakspot.core.evidence import ConfusedWith, Share
from weakspot.core.failures import Side
from weakspot.core.slices import FailureSlice
from weakspot.verify.cause_signs import CueSigns, LookAlike, Presence

NO_TRAINING = "Why is unknown; training rows would tell."
MAY_BE_CUE = "Whether this is a cue of another class cannot be told from these samples, so no cause is named."
NO_EMBEDDINGS = (
    "Without embeddings, look-alike classes and wrong labels cannot be told from a hard kind."
)
NEARLY_ALIKE = "Part of the failures lies apart from their own class, so look-alike classes and wrong labels cannot be excluded."
RARE_OR_MORE = (
    "Training has fewer of them; whether they are rare there or only less common cannot be told."
)
FEWER_BY_CHANCE = "Training may have fewer of them; there are too few samples to tell."


def class_words(found: FailureSlice) -> str:
    return f"samples without {found.class_name}" if found.side is Side.ABSENT else found.class_name


def figures(share: Share) -> str:
    """Return a share with what is behind it, for example `10 % (2 of 20, interval 3–30 %)`."""
    return (
        f"{100 * share.value:.0f} % ({share.count} of {share.total}, "
        f"interval {100 * share.interval.low:.0f}–{100 * share.interval.high:.0f} %)"
    )


def shares_sentence(
    found: FailureSlice,
    own: Share | None,
    here: Share | None,
    rival: str | None,
    in_rival: Share | None,
) -> str:
    parts, class_name = [], class_words(found)
    if own is not None and here is not None:
        parts.append(
            f"Such samples make up {figures(own)} of {class_name} in training and {figures(here)} in evaluation."
        )
    elif own is None:
        parts.append(
            f"Too few training samples of {class_name} with embeddings to say how common such samples are there."
        )
    if rival is not None and in_rival is not None:
        where = "the training samples of " if own is not None else ""
        parts.append(f"The same look is found on {figures(in_rival)} of {where}{rival}.")
    return " ".join(parts)


def cue_sentences(rival: str, signs: CueSigns | None) -> tuple[str, ...]:
    """Return what other classes show of a cue."""
    found = []
    if signs is None or not signs.is_testable:
        return ("Other classes have too few samples to show the cue at work.",)
    if signs.is_seen_in_thirds:
        taken, n_carrying, others, n_others = signs.thirds
        found.append(
            f"Samples of third classes with this look are taken for {rival} in {taken} of {n_carrying} cases, "
            f"without it in {others} of {n_others}."
        )
    if signs.is_seen_in_rival:
        failures, n_lacking, others, n_others = signs.rival
        found.append(
            f"Without it, {failures} of {n_lacking} samples of {rival} fail, {others} of {n_others} of the others."
        )
    return tuple(found)


def presence_sentence(presence: Presence) -> str:
    return (
        f"As deep inside as half of the failures lie {figures(presence.in_training)} of the class in training and "
        f"{figures(presence.in_evaluation)} in evaluation."
    )


def alike_sentence(found: FailureSlice, rival: str | None, alike: LookAlike) -> str:
    other = rival or ("samples with it" if found.side is Side.ABSENT else "samples without it")
    back = (
        ""
        if alike.back is None
        else f" {alike.back.count} of {alike.back.total} samples of {other} are taken for {found.class_name} in turn."
    )
    return (
        f"{alike.either.count} of {alike.either.total} of these failures lie where training has {class_words(found)} and {other} "
        f"alike; training samples around them have the label of most of their neighbours in {100 * alike.told_apart:.0f} % of cases.{back}"
    )


def confused_with_sentence(found: FailureSlice, confused_with: ConfusedWith) -> str:
    among, others = confused_with.among_failures, confused_with.among_other_failures
    if confused_with.is_real:
        elsewhere = (
            f", as are {others.count} of the {others.total} failures outside"
            if others.total
            else ""
        )
        return (
            f"“{found.title}” become {confused_with.answer}: {figures(confused_with.inside)}, "
            f"against {figures(confused_with.outside)} of the other "
            f"{class_words(found)} samples. {among.count} of the {among.total} failures inside are taken for "
            f"{confused_with.answer}{elsewhere}."
        )
    return (
        f"No wrong answer stands out: the most frequent is {confused_with.answer}, "
        f"with {among.count} of {among.total} failures inside and "
        f"{others.count} of {others.total} outside."
    )
