"""What was asked of some samples so far and what is left, in plain words."""

from weakspot.core.record import Record


class Standing(Record):
    """What was asked of some samples about a classifier so far, and what is left.

    Args:
        n_samples: the samples.
        n_questions: different questions.
        n_batches: times that something new was asked.
        n_found: findings among them.
        share: part of the error rate that a single question asked now may spend; earlier findings raise it where `fdr` is held.
        largest_p: a single question that is asked now is a finding up to this p-value.
        alpha: error rate over everything.
        n_other_classifiers: other classifiers that the same samples were asked about; each has an error rate of its own.
        n_checks: comparisons of two classifiers on these samples; each of them promises for itself.
    """

    n_samples: int
    n_questions: int
    n_batches: int
    n_found: int
    share: float
    largest_p: float
    alpha: float
    n_other_classifiers: int = 0
    n_checks: int = 0

    @property
    def sentence(self) -> str:
        """Return it in plain words."""
        return " ".join([self._asked, *self._beside])

    @property
    def _asked(self) -> str:
        samples = _counted(self.n_samples, "sample")
        if not self.n_batches:
            return (
                f"Nothing was asked of these {samples} yet; the first batch of questions may spend {_percent(self.share)} of the "
                f"error rate of {_percent(self.alpha)}, so a single question is a finding at p ≤ {self.largest_p:.2g}."
            )
        questions = _counted(self.n_questions, "question")
        batches = "1 batch" if self.n_batches == 1 else f"{self.n_batches:,} batches"
        asked = (
            questions
            if self.n_batches == self.n_questions
            else f"{batches} of questions ({self.n_questions:,} in all)"
        )
        verb = "was" if self.n_batches == 1 else "were"
        return (
            f"{asked} {verb} asked of these {samples}; the next may spend {_percent(self.share)} of the error rate of "
            f"{_percent(self.alpha)}, so a single question is a finding at p ≤ {self.largest_p:.2g}. "
            "The same question again is free; fresh samples restore the full level."
        )

    @property
    def _beside(self) -> list[str]:
        found = []
        if self.n_other_classifiers:
            others = _counted(self.n_other_classifiers, "other classifier")
            found.append(f"They were also asked about {others}; each has an error rate of its own.")
        if self.n_checks:
            checks = _counted(self.n_checks, "comparison")
            found.append(f"{checks} of two classifiers on them promise for themselves only.")
        return found


def _counted(number: int, noun: str) -> str:
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def _percent(share: float) -> str:
    """Return a share in percent with two digits that mean something.

    >>> [_percent(share) for share in (0.6, 0.0541, 0.0029, 0.05, 1.0)]
    ['60 %', '5.4 %', '0.29 %', '5 %', '100 %']
    """
    percents = f"{100 * share:.2g}"
    return f"{float(percents):g} %"
