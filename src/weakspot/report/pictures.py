"""Which pictures show a slice best."""

from dataclasses import dataclass

import numpy as np

from weakspot.core.arrays import IntArray
from weakspot.core.dataset import Task
from weakspot.core.failures import ClassProblem, FailureCriterion, class_problems, predicted_classes
from weakspot.core.samples import SampleSet
from weakspot.core.slices import FailureSlice, matches


@dataclass(frozen=True, kw_only=True)
class ShownPicture:
    """One picture of a report.

    Args:
        sample_id: which sample; thumbnails are given by this id.
        answer: what the classifier said, in words.
        has_failed: whether that counts as a failure.
    """

    sample_id: str
    answer: str
    has_failed: bool


@dataclass(frozen=True, kw_only=True)
class SlicePictures:
    """The samples deepest inside a slice, and those of the class farthest from it."""

    hard: tuple[ShownPicture, ...] = ()
    easy: tuple[ShownPicture, ...] = ()

    @property
    def sample_ids(self) -> tuple[str, ...]:
        """Return the samples whose thumbnails are needed."""
        return tuple(picture.sample_id for picture in self.hard + self.easy)


def choose_pictures(found: FailureSlice, samples: SampleSet, criterion: FailureCriterion, *, n_pictures: int = 12) -> SlicePictures:
    """Return the samples of the class that lie deepest inside and farthest outside, chosen by the rule and not by outcome."""
    problems = class_problems(samples.dataset, samples.rows, criterion)
    problem = next((one for one in problems if matches(found, one)), None)
    if problem is None:
        return SlicePictures()
    scores = found.rule.scores(samples, problem.rows)
    inside = found.inside(samples, problem)
    order = np.argsort(-scores, kind="stable")
    hard = [int(place) for place in order if inside[place]]
    easy = [int(place) for place in order[::-1] if not inside[place] and np.isfinite(scores[place])]
    return SlicePictures(
        hard=_shown(samples, problem, np.array(hard[:n_pictures], dtype=np.int64)),
        easy=_shown(samples, problem, np.array(easy[:n_pictures], dtype=np.int64)),
    )


def _shown(samples: SampleSet, problem: ClassProblem, places: IntArray) -> tuple[ShownPicture, ...]:
    dataset, rows, failed = samples.dataset, problem.rows[places], problem.failed[places]
    if dataset.task is Task.SINGLE_LABEL:
        answers = [dataset.class_names[code] for code in predicted_classes(dataset, rows)]
    else:
        answers = ["wrong" if one else "right" for one in failed]
    return tuple(
        ShownPicture(sample_id=name, answer=answer, has_failed=bool(wrong))
        for name, answer, wrong in zip(dataset.sample_ids(rows), answers, failed, strict=True)
    )
