"""What was measured of a caption: how often the classifier fails on its images, and whether that is more often than without."""

from enum import StrEnum
from typing import Literal

from pydantic import Field

from weakspot.core.evidence import Share
from weakspot.core.record import Record

TrialStep = Literal["baseline", "cluster", "sentence", "adjective", "user", "control", "reworded"]
"""Where a caption comes from: the prompt without any, a cluster of failures, one of its sentences, fewer adjectives, a person, the
generator, which says what to compare a change with, or a language model."""


class StoppedBecause(StrEnum):
    """Why no more images of a caption were generated."""

    BETTER = "better"
    NOT_BETTER = "not better"
    TARGET_FAILURES = "enough target failures"
    MOST_IMAGES = "most images"
    BUDGET = "budget"
    REFUSED = "refused"
    REJECTED = "rejected"
    PRECISE = "known well enough"

    @classmethod
    def _missing_(cls, value: object) -> "StoppedBecause | None":
        """Read what earlier versions wrote."""
        return cls.MOST_IMAGES if value == "most pictures" else None


class Contrast(Record):
    """How much a caption differs from the baseline.

    Args:
        value: the difference of the two rates, or their ratio; None for a ratio to a baseline that never failed.
        low: lower end of its interval, which holds at whatever time one looks.
        high: upper end; None where a ratio has none because the baseline may never fail.
        level: of the interval.
    """

    value: float | None
    low: float
    high: float | None
    level: float = 0.95


class CaptionTrial(Record):
    """One caption and everything that its images say.

    Args:
        caption: what was added to the baseline prompt; empty for the baseline.
        prompt: the whole prompt.
        step: where the caption comes from.
        n_asked: images ordered.
        rejected: how many each quality check rejected.
        n_views: images that passed but do not count, because they show an object of the user's own that an earlier one shows.
        rate: failures that count among the images that were judged, towards the target if there is one; its interval holds at
            whatever time one looks. Of images composed from a user's own the first of every object is judged.
        all_failures: failures of any kind among the same images.
        target_failures: images taken for the target; 0 without a target.
        difference: rate minus the baseline's, None for the baseline itself and before anything was judged.
        ratio: rate over the baseline's, likewise.
        log10_e_value: evidence that the caption fails more often than the baseline, as a power of ten; 0 says nothing.
        q_value: the false discovery rate over all captions at which this one would just be a discovery.
        is_proven: whether it is a discovery at the rate that was asked for, corrected for every caption tried.
        stopped_because: why no more was generated.
        wrong_labels: what failures of any kind were taken for, most frequent first.
        note: for example why the generator refused.
    """

    caption: str
    prompt: str
    step: TrialStep
    n_asked: int = 0
    rejected: dict[str, int] = Field(default_factory=dict)
    n_views: int = 0
    rate: Share
    all_failures: int = 0
    target_failures: int = 0
    difference: Contrast | None = None
    ratio: Contrast | None = None
    log10_e_value: float = 0.0
    q_value: float = 1.0
    is_proven: bool = False
    stopped_because: StoppedBecause
    wrong_labels: dict[str, int] = Field(default_factory=dict)
    note: str = ""

    @property
    def n_images(self) -> int:
        return self.rate.total

    @property
    def failures(self) -> int:
        return self.rate.count

    @property
    def e_value(self) -> float:
        """Return the evidence that the caption fails more often than the baseline: a bet that pays at most 1 on average if not."""
        return float(10.0 ** min(self.log10_e_value, 300.0))

    @property
    def can_be_generated(self) -> bool:
        return self.rate.total > 0
