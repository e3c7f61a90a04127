"""Images of what is said of whole classes: evaluation images beside training images."""

from collections.abc import Mapping, Sequence

import numpy as np

from weakspot.core.class_findings import ClassFinding
from weakspot.core.dataset import Dataset, Task
from weakspot.core.failures import FailureCriterion, predicted_classes
from weakspot.core.samples import SampleSet
from weakspot.report.image_budget import ShownImage, SliceImages


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
    known = _shown(wanted, samples, criterion)
    return {
        one.finding_id: SliceImages(
            hard=_of(one.examples_here[:n_images], known),
            easy=_of(one.examples_there[:n_images], known),
        )
        for one in shown
        if one.examples_here or one.examples_there
    }


def _of(names: Sequence[str], known: Mapping[str, ShownImage]) -> tuple[ShownImage, ...]:
    return tuple(known[name] for name in names if name in known)


def _shown(
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
