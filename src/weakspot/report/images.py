"""Which images a report shows, how many and how large, so that one file opens quickly and can be sent by mail."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from weakspot.core.arrays import IntArray
from weakspot.core.dataset import Dataset, Task
from weakspot.core.evidence import ClassFinding
from weakspot.core.failures import ClassProblem, FailureCriterion, class_problems, predicted_classes
from weakspot.core.samples import SampleSet
from weakspot.core.slices import FailureSlice, matches


@dataclass(frozen=True, kw_only=True)
class ShownImage:
    """One image of a report.

    Args:
        sample_id: which sample; thumbnails are given by this id.
        answer: what the classifier said, in words.
        has_failed: whether that counts as a failure.
    """

    sample_id: str
    answer: str
    has_failed: bool

    @property
    def caption(self) -> str:
        return f"{'taken for' if self.has_failed else 'right:'} {self.answer}"


@dataclass(frozen=True, kw_only=True)
class SliceImages:
    """The samples deepest inside a slice, and those of the class farthest from it."""

    hard: tuple[ShownImage, ...] = ()
    easy: tuple[ShownImage, ...] = ()

    @property
    def sample_ids(self) -> tuple[str, ...]:
        return tuple(image.sample_id for image in self.hard + self.easy)


def choose_images(
    found: FailureSlice, samples: SampleSet, criterion: FailureCriterion, *, n_images: int = 12
) -> SliceImages:
    """Return the samples of the class that lie deepest inside and farthest outside, chosen by the rule and not by result."""
    problems = class_problems(samples.dataset, samples.rows, criterion)
    problem = next((one for one in problems if matches(found, one)), None)
    if problem is None:
        return SliceImages()
    scores = found.rule.scores(samples, problem.rows)
    inside = found.inside(samples, problem)
    order = np.argsort(-scores, kind="stable")
    hard = [int(place) for place in order if inside[place]]
    easy = [int(place) for place in order[::-1] if not inside[place] and np.isfinite(scores[place])]
    return SliceImages(
        hard=_shown(samples, problem, np.array(hard[:n_images], dtype=np.int64)),
        easy=_shown(samples, problem, np.array(easy[:n_images], dtype=np.int64)),
    )


def _shown(samples: SampleSet, problem: ClassProblem, places: IntArray) -> tuple[ShownImage, ...]:
    dataset, rows, failed = samples.dataset, problem.rows[places], problem.failed[places]
    if dataset.task is Task.SINGLE_LABEL:
        answers = [dataset.class_names[code] for code in predicted_classes(dataset, rows)]
    else:
        answers = ["wrong" if one else "right" for one in failed]
    return tuple(
        ShownImage(sample_id=name, answer=answer, has_failed=bool(wrong))
        for name, answer, wrong in zip(dataset.sample_ids(rows), answers, failed, strict=True)
    )


MEGABYTE = 1_000_000
MIN_SIDE = 64
N_TRIED = 24
TAG_BYTES = 160

MakeThumbnail = Callable[[str, int], bytes | None]


ImagePlan = tuple[int, int]
"""How images are shown: so many at each end of a slice, and their longest side."""


def fit_images(
    images: Mapping[str, SliceImages],
    make: MakeThumbnail,
    *,
    asked: ImagePlan,
    most_bytes: int,
    most_megabytes: float,
) -> tuple[dict[str, SliceImages], dict[str, bytes], str]:
    """Return as many images as fit, the first slices before later ones; their JPEG data by sample id; and what was left out, in words.

    Args:
        images: what would be shown, by slice id, most important slice first.
        make: returns the thumbnail of a sample with a longest side, None if there is no image.
        asked: what the settings ask for.
        most_bytes: room for images in the file.
        most_megabytes: size of the whole file, as it is said to people.
    """
    smallest = min(1, asked[0]), min(MIN_SIDE, asked[1])
    n_each, side = next(
        (plan for plan in _plans(*asked) if _estimate(images, make, *plan) <= most_bytes), smallest
    )
    made: dict[str, bytes | None] = {}
    shown: dict[str, SliceImages] = {}
    room = most_bytes
    for slice_id, each in images.items():
        cut = _cut(each, n_each)
        for sample_id in cut.sample_ids:
            if sample_id not in made:
                made[sample_id] = make(sample_id, side)
        room -= sum(_size(made[sample_id]) for sample_id in cut.sample_ids)
        if room < 0:
            break
        shown[slice_id] = cut
    thumbnails = {name: data for name, data in made.items() if data is not None}
    left_out = []
    if n_each < asked[0]:
        left_out.append(f"at most {n_each} of {asked[0]} images are shown at each end of a slice")
    if side < asked[1]:
        left_out.append(f"they are {side} instead of {asked[1]} pixels large")
    if len(shown) < len(images):
        after = f"findings after number {len(shown)} are shown without images"
        left_out.append(after if shown else "no images are shown")
    note = (
        f"To keep this file below {most_megabytes:g} MB, {', '.join(left_out)} ([report] most_megabytes in weakspot.toml)."
        if left_out
        else ""
    )
    return shown, thumbnails, note


def _plans(n_each: int, side: int) -> Iterator[ImagePlan]:
    """Yield ways to show images, from what is asked for down to what can still be recognised."""
    yield n_each, side
    for share, size in ((0.5, 1.0), (0.5, 0.7), (0.25, 0.6), (0.125, 0.5)):
        smaller = min(side, max(MIN_SIDE, round(size * side)))
        yield min(n_each, max(1, round(share * n_each))), smaller


def _estimate(
    images: Mapping[str, SliceImages], make: MakeThumbnail, n_each: int, side: int
) -> float:
    """Return about how many bytes images take in the page, from some of them spread over all slices."""
    names = [name for each in images.values() for name in _cut(each, n_each).sample_ids]
    tried = names[:: max(1, len(names) // N_TRIED)]
    sizes = [_size(make(name, side)) for name in tried]
    return 1.1 * len(names) * sum(sizes) / len(sizes) if sizes else 0.0


def _size(data: bytes | None) -> int:
    """Return what an image takes in the page: base64 and the tags around it."""
    return TAG_BYTES + (4 * (len(data) + 2) // 3 if data is not None else 0)


def _cut(each: SliceImages, n_each: int) -> SliceImages:
    return SliceImages(hard=each.hard[:n_each], easy=each.easy[:n_each])


def class_finding_images(
    findings: Sequence[ClassFinding],
    samples: SampleSet,
    criterion: FailureCriterion,
    *,
    n_images: int,
) -> dict[str, SliceImages]:
    """Return by finding the images that show it: `hard` of the evaluation, `easy` of training; only confirmed ones have any."""
    shown = [one for one in findings if one.is_confirmed]
    wanted = {name for one in shown for name in (*one.examples_here, *one.examples_there)}
    if not wanted:
        return {}
    known = _shown_rows(wanted, samples, criterion)

    def of(names: Sequence[str]) -> tuple[ShownImage, ...]:
        return tuple(known[name] for name in names[:n_images] if name in known)

    return {
        one.finding_id: SliceImages(hard=of(one.examples_here), easy=of(one.examples_there))
        for one in shown
        if one.examples_here or one.examples_there
    }


def _shown_rows(
    wanted: set[str], samples: SampleSet, criterion: FailureCriterion
) -> dict[str, ShownImage]:
    dataset = samples.dataset
    places = zip(dataset.sample_ids(samples.rows), samples.rows.tolist(), strict=True)
    rows = {name: row for name, row in places if name in wanted}
    return {name: _image(name, row, dataset, criterion) for name, row in rows.items()}


def _image(name: str, row: int, dataset: Dataset, criterion: FailureCriterion) -> ShownImage:
    alone = np.array([row])
    is_judged = dataset.task is Task.SINGLE_LABEL and bool(dataset.is_labelled[row])
    if not is_judged or not dataset.has_predictions:
        return ShownImage(sample_id=name, answer="", has_failed=False)
    said = int(predicted_classes(dataset, alone)[0])
    answer = dataset.class_names[said] if said >= 0 else ""
    has_failed = said >= 0 and bool(criterion.failed(dataset, alone)[0])
    return ShownImage(sample_id=name, answer=answer, has_failed=has_failed)
