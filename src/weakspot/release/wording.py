"""Figures as people read them."""

from weakspot.core.evidence import Interval
from weakspot.release.figures import SubjectKind


def percent(value: float) -> str:
    """Return a share in per cent, with a decimal only where it says something.

    >>> percent(0.5), percent(0.995), percent(-0.031)
    ('50 %', '99.5 %', '-3.1 %')
    """
    rounded = round(100 * value, 1)
    return f"{rounded:.0f} %" if rounded == round(rounded) else f"{rounded:.1f} %"


def between(interval: Interval) -> str:
    """Return an interval of a share.

    >>> between(Interval(low=0.1, high=0.25))
    '10 % to 25 %'
    """
    return f"{percent(interval.low)} to {percent(interval.high)}"


def samples(count: int) -> str:
    """Return a number of samples.

    >>> samples(1), samples(2)
    ('1 sample', '2 samples')
    """
    return f"{count} sample" if count == 1 else f"{count} samples"


def subject_words(subject: str, kind: SubjectKind) -> str:
    """Return a subject as the beginning of a sentence.

    >>> subject_words("disc: green", SubjectKind.SLICE)
    '“disc: green”'
    """
    return "The model" if kind is SubjectKind.OVERALL else f"“{subject}”"
