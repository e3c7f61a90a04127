"""What is said of a slice that rows are to be collected for; estimates say that they are some."""

from weakspot.core.repairs import SliceNeed


def need_sentences(need: SliceNeed) -> tuple[str, ...]:
    """Return what a slice has, lacks and could get, in words."""
    counts = f"“{need.title}” fails on {need.rate_inside:.0%} of {need.n_inside:,} rows, the rest of its class on {need.rate_outside:.0%}."
    sentences = [counts.replace("%", " %")]
    if need.n_training is not None:
        sentences.append(
            f"It has {need.n_training:,} of the {need.n_class_training:,} training rows of its class."
        )
        if need.n_to_match:
            sentences.append(
                f"{need.n_to_match:,} more would give it the share that it has in evaluation."
            )
    waiting = need.n_pool - need.n_pool_labelled
    unlabelled = f", and {waiting:,} without a label" if waiting else ""
    sentences.append(f"The pool has {need.n_pool_labelled:,} labelled rows that fit{unlabelled}.")
    return (*sentences, *_estimates(need))


def _estimates(need: SliceNeed) -> tuple[str, ...]:
    if not need.estimates:
        return (f"How many rows a given gain takes cannot be estimated: {need.why_no_estimate}.",)
    told = " and ".join(
        f"about {one.n_rows:,} more rows for {100 * one.gain:.0f} points" for one in need.estimates
    )
    return (
        f"Estimate, not measured: {told}, if more rows do for it what they do across {need.n_kinds} other kinds of its "
        f"class, which fail less with the power {need.exponent or 0.0:.2f} of their number of training rows.",
    )
