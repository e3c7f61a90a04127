"""Figures, findings and checks as sentences that need no training in statistics."""

from collections.abc import Sequence

from weakspot.core.evidence import Cause, Evidence, Explanation, Interval, Measurement, Verdict
from weakspot.core.failures import Side
from weakspot.core.run import CheckState, PreflightCheck
from weakspot.core.slices import FailureSlice, SliceName

MIN_SHOWN = 0.0001
MIN_P = 1e-300
CERTAIN = 0.05
HALF_POINT = 0.005
MAX_NEAREST = 3

ARM_NAMES = {
    "plain": "retrained only",
    "random": "random choice",
    "confidence": "least confident",
    "class-name": "nearest class name",
    "zero-shot-classes": "zero-shot, classes",
    "zero-shot-groups": "zero-shot, slices",
}

VERDICT_WORDS = {
    Verdict.CONFIRMED: "confirmed",
    Verdict.NOT_CONFIRMED: "not confirmed: the difference may be chance",
    Verdict.TOO_FEW: "too few samples to test",
    Verdict.SAME: "not counted, has nearly the same members as",
    Verdict.CIRCULAR: "cannot be tested: it is defined by what the classifier said",
}

CORRECTION_WORDS = {
    "fdr": "Kept within the limit: the expected share of false findings among all confirmed slices (Benjamini and Hochberg).",
    "fwer": "Kept within the limit: the chance that any confirmed slice is a false finding (Holm).",
    "fdr-dependent": "Kept within the limit: the expected share of false findings among all confirmed slices, however they depend "
    "on each other (Benjamini and Yekutieli).",
}

CAUSE_WORDS = {
    Cause.RARE: "Evidence points to too few such samples in training.",
    Cause.SHIFT: "Evidence points to such samples being much more common here than in training.",
    Cause.LABELS: "Evidence points to wrong labels rather than wrong predictions.",
    Cause.SPURIOUS: "Evidence points to a cue that usually belongs to another class.",
    Cause.CONFUSABLE: "Evidence points to two classes that look alike: the images alone may not tell them apart.",
    Cause.HARD: "Evidence points to a kind that is common in training and still hard; more of the same may not help.",
    Cause.UNKNOWN: "The samples do not tell why.",
}


def cause_sentences(evidence: Evidence) -> tuple[str, ...]:
    """Return the cause of a slice in a sentence, and the figures behind it; nothing if none was looked for."""
    named, found = evidence.named_cause, evidence.cause
    said = ("" if named is None else CAUSE_WORDS[named], "" if found is None else found.sentence)
    return tuple(sentence for sentence in said if sentence)


EFFECT_WORDS = ((0.2, "very small"), (0.5, "small"), (0.8, "medium"))


def percent(share: float) -> str:
    """Return a share in whole percent.

    >>> percent(0.625), percent(0.0), percent(0.0004)
    ('62 %', '0 %', 'under 1 %')
    """
    if 0 < share < HALF_POINT:
        return "under 1 %"
    return f"{100 * share:.0f} %"


def points(change: float) -> str:
    """Return a change of a share in percentage points, with its sign.

    >>> points(0.123), points(-0.04), points(0.0)
    ('+12', '−4', '±0')
    """
    rounded = round(100 * change)
    if rounded == 0:
        return "±0"
    return f"+{rounded}" if rounded > 0 else f"−{-rounded}"


def interval(values: Interval) -> str:
    """Return an interval of a share in words.

    >>> interval(Interval(low=0.51, high=0.72))
    '95 % interval 51–72 %'
    """
    return f"{100 * values.level:.0f} % interval {100 * values.low:.0f}–{100 * values.high:.0f} %"


def p_value(value: float) -> str:
    """Return a p-value with the digits that matter.

    >>> p_value(0.00001), p_value(0.0312), p_value(1.0)
    ('< 0.0001', '0.031', '1')
    """
    return f"< {MIN_SHOWN:.4f}" if value < MIN_SHOWN else f"{value:.2g}"


def exact_p(value: float, *, name: str = "p") -> str:
    """Return a p-value or q-value in two digits, however small; what a float cannot hold is not called zero.

    >>> exact_p(2.14e-48), exact_p(0.0), exact_p(0.0, name="q")
    ('p = 2.1e-48', 'p < 1e-300', 'q < 1e-300')
    """
    return f"{name} < {MIN_P:.0e}" if value < MIN_P else f"{name} = {value:.2g}"


def class_words(found: FailureSlice) -> str:
    noun = "images" if _shows_images(found) else "samples"
    return (
        f"{noun} without {found.class_name}"
        if found.side is Side.ABSENT
        else f"“{found.class_name}” {noun}"
    )


def _shows_images(found: FailureSlice) -> bool:
    """Return whether a slice may be called images: not one of column values whose name, as in a table, speaks of none."""
    reads_columns = bool(found.rule.parts) and all(part.columns for part in found.rule.parts)
    phrase = "" if found.name is None else found.name.phrase
    return not (reads_columns and phrase) or "photo" in phrase or "image" in phrase


def title_with_method(found: FailureSlice) -> str:
    """Return a slice with who found it; an unnamed one says so itself."""
    has_own = found.name is None and not found.number
    return found.title if has_own else f"{found.title} ({found.method})"


def slice_words(found: FailureSlice) -> str:
    if found.name is None:
        group = f" (group {found.number})" if found.number else ""
        return f"one kind of {class_words(found)}{group}, for which no words are sure,"
    return f"{class_words(found)} that fit “{found.name.contrast}”"


def nearest_sentence(found: FailureSlice) -> str:
    """Return the words that may fit a slice as not sure, with why; empty without any."""
    words = found.nearest_words[:MAX_NEAREST]
    if not words:
        return ""
    listed = ", ".join(f"“{name.contrast}”" for name in words)
    return f"Not sure: {listed} ({words[0].doubt or 'nobody checked them'})."


def held_sentence(name: SliceName) -> str:
    """Return how words did on samples that took no part in choosing them; empty if they were not asked about."""
    held = name.held
    if held is None or name.is_unsure:
        return ""
    return (
        f"“{name.contrast}” fits {held.n_fitting} of {held.n_members} members and {held.n_others_fitting} of {held.n_others} others "
        f"among the samples that took no part in choosing words (AUC {held.auc:.2f}, {exact_p(held.q_value, name='q')})."
    )


def finding_sentence(found: FailureSlice, evidence: Evidence) -> str:
    return (
        f"On {slice_words(found)} the classifier fails {percent(evidence.rate_inside)} of the time "
        f"({interval(evidence.interval_inside)}), against {percent(evidence.rate_outside)} on the other {class_words(found)}."
    )


def proof_sentence(evidence: Evidence) -> str:
    others = f"the {evidence.n_tested} slices tested together"
    before = " and everything that these samples were asked before"
    asked = others if evidence.n_tested > 1 else "everything that these samples were asked before"
    asked += before if evidence.n_tested > 1 and evidence.batch > 1 else ""
    together = f"; corrected for {asked}: {p_value(evidence.q_value)}"
    return (
        f"Measured on {evidence.n_inside + evidence.n_outside} samples that took no part in finding it: "
        f"{evidence.failures_inside} of {evidence.n_inside} inside failed, {evidence.failures_outside} of {evidence.n_outside} "
        f"outside. A gap like this or larger would arise by chance with probability {p_value(evidence.p_value)}"
        f"{together if evidence.n_tested > 1 or evidence.batch > 1 else ''}.{groups_sentence(evidence)}"
    )


def groups_sentence(evidence: Evidence) -> str:
    """Return how many groups the images belong to, empty if every image is its own."""
    if not evidence.groups_inside and not evidence.groups_outside:
        return ""
    return (
        f" These are {evidence.n_inside} images of {evidence.groups_inside} groups inside and {evidence.n_outside} of "
        f"{evidence.groups_outside} outside; groups were counted, not images."
    )


def gap_sentence(evidence: Evidence) -> str:
    """Return the gap that allows for selection beside the measured one, empty if there is none."""
    if evidence.adjusted_gap is None or evidence.adjusted_interval is None:
        return ""
    low, high = evidence.adjusted_interval.low, evidence.adjusted_interval.high
    return (
        f"About {round(100 * evidence.adjusted_gap)} points above the rest ({round(100 * low)} to {round(100 * high)}), allowing "
        f"for the fact that only large gaps are confirmed; {round(100 * evidence.gap)} as measured. "
    )


def effect_sentence(evidence: Evidence) -> str:
    """Return how large a gap is, empty if one side has no samples."""
    effect = evidence.effect
    if effect is None:
        return ""
    size = next((word for bound, word in EFFECT_WORDS if effect.cohens_h < bound), "large")
    low, high = effect.ratio_interval.low, effect.ratio_interval.high
    times = (
        "None of the others failed"
        if effect.risk_ratio is None
        else f"Members fail {effect.risk_ratio:.1f} times as often"
    )
    return (
        f"{gap_sentence(evidence)}{times} ({100 * effect.ratio_interval.level:.0f} % interval of the ratio {low:.1f} to {high:.1f}); "
        f"a {size} effect (Cohen's h {effect.cohens_h:.2f})."
    )


def witness_sentence(name: SliceName) -> str:
    if name.witness_score is None:
        return f"“{name.contrast}”: {name.witness} could not tell."
    fits = "does not fit" if name.is_doubtful else "fits"
    return f"“{name.contrast}” {fits} according to {name.witness} ({name.witness_score:+.2f})."


def explanation_sentence(explanation: Explanation, title: str) -> str:
    """Return why a confirmed slice is no finding of its own.

    >>> shared = Explanation(slice_id="s", shared_failures=0.9, n_inside=10, failures_inside=2, n_outside=30, failures_outside=5)
    >>> explanation_sentence(shared, "apple: green")
    '90 % of its failures are members of “apple: green”. Its other members fail on 2 of 10, samples in neither on 5 of 30.'
    """
    shared = percent(explanation.shared_failures)
    if (
        explanation.shared_by_all is not None
        and explanation.shared_by_all > explanation.shared_failures
    ):
        any_of = f", {percent(explanation.shared_by_all)} of some finding"
    else:
        any_of = ""
    others = (
        f"{explanation.failures_inside} of {explanation.n_inside}"
        if explanation.n_inside
        else "none: there are none"
    )
    rest = (
        f"{explanation.failures_outside} of {explanation.n_outside}"
        if explanation.n_outside
        else "none: there are none"
    )
    within = (
        f" Members of both fail on {explanation.failures_both} of {explanation.n_both}, the others of that slice on "
        f"{explanation.failures_beside} of {explanation.n_beside}."
        if explanation.n_both and explanation.n_beside
        else ""
    )
    return (
        f"{shared} of its failures are members of “{title}”{any_of}.{within} "
        f"Its other members fail on {others}, samples in neither on {rest}."
    )


def measurement_words(measured: Measurement) -> str:
    """Return a slice on other data in words.

    >>> from weakspot.core.evidence import Share
    >>> from weakspot.core.slices import DataUse
    >>> use = DataUse(name="test", n_samples=40, digest="t")
    >>> measurement_words(Measurement(measured_on=use, inside=Share.of(6, 10), outside=Share.of(3, 30), gap=0.5))
    'test: fails on 60 % of 10 inside (95 % interval 31–83 %), 10 % of 30 outside (95 % interval 3–26 %)'
    """
    inside, outside = measured.inside, measured.outside
    if not inside.total:
        return f"{measured.measured_on.name}: no such samples"
    return (
        f"{measured.measured_on.name}: fails on {percent(inside.value)} of {inside.total} inside ({interval(inside.interval)}), "
        f"{percent(outside.value)} of {outside.total} outside ({interval(outside.interval)})"
    )


def count(number: int, noun: str) -> str:
    """Return a number with its noun.

    >>> count(1, "slice"), count(3, "slice")
    ('1 slice', '3 slices')
    """
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def arm_name(arm: str) -> str:
    return ARM_NAMES.get(arm, arm)


LOOKED_FOR = {
    "class order": "wrong class order",
    "preprocessing": "wrong preprocessing",
    "leaks": "leaks",
}
"""What the absence of a sign is told of; of the other checks only what stands out is told."""


def checks_sentence(checks: Sequence[PreflightCheck]) -> str:
    """Return all checks in one line: problems, then what was looked for in vain, then what is worth knowing; empty without checks.

    >>> fine = PreflightCheck(check="class order", state=CheckState.OK, sentence="No other order fits better.")
    >>> files = PreflightCheck(check="files", state=CheckState.NOTICE, sentence="3 of 90 ...", short="3 files set aside")
    >>> checks_sentence([fine, files])
    'no sign of wrong class order; 3 files set aside'
    """
    if not checks:
        return ""
    problems = [_short(check) for check in checks if check.state is CheckState.PROBLEM]
    notices = [_short(check) for check in checks if check.state is CheckState.NOTICE]
    absent = [
        LOOKED_FOR[check.check]
        for check in checks
        if check.state is CheckState.OK and check.check in LOOKED_FOR
    ]
    said = [f"PROBLEM: {short}" for short in problems]
    said += [f"no sign of {', '.join(absent)}".replace(", wrong ", ", ")] if absent else []
    return "; ".join([*said, *notices]) or "nothing stands out"


def _short(check: PreflightCheck) -> str:
    return check.short or check.check
