"""What each repair of a run changed for one sample: what the classifier says with the retrained layer."""

from pathlib import Path

import numpy as np

from weakspot.backends.head_files import read_head
from weakspot.core.dataset import Task
from weakspot.core.errors import WeakspotError
from weakspot.core.run import RunRecord
from weakspot.pipeline.preparation import FEATURES
from weakspot.repair.history import HEAD, current_id, head_name
from weakspot.web.services.view import View
from weakspot.web.services.workspace import Workspace


class RepairOnSample(View):
    """One repair on one sample.

    Args:
        repair_id: which repair.
        strategy: how it was made.
        made: when, ISO 8601; empty if that is not known.
        is_current: whether it is the one in use.
        answer: what the classifier says with it.
        probability: of that answer.
        was_failure: whether the classifier failed without it; null without a label.
        is_failure: whether it fails with it; null without a label.
    """

    repair_id: str
    strategy: str
    made: str
    is_current: bool
    answer: str
    probability: float
    was_failure: bool | None
    is_failure: bool | None


class RepairsOnSample(View):
    """All repairs of the newest run on one sample, the one in use first; none where a layer cannot be used."""

    repairs: tuple[RepairOnSample, ...]


def repairs_on_sample(workspace: Workspace, row: int) -> RepairsOnSample:
    record = workspace.record()
    nothing = RepairsOnSample(repairs=())
    samples = workspace.samples
    here = np.array([row])
    if (
        record is None
        or samples.dataset.task is not Task.SINGLE_LABEL
        or FEATURES not in samples.spaces
        or not bool(samples.has_embeddings(FEATURES, here)[0])
    ):
        return nothing
    found = [
        one
        for repair_id, strategy, made, file in _layers(workspace, record)
        if (one := _on_sample(workspace, row, (repair_id, strategy, made), file, record))
    ]
    return RepairsOnSample(repairs=tuple(found))


def _layers(workspace: Workspace, record: RunRecord) -> list[tuple[str, str, str, Path]]:
    """Return id, strategy, time and layer of every repair, the one in use first, then the newest."""
    folder = workspace.project.store.runs.run_folder(record.run_id)
    listed = []
    if record.repairs:
        listed.append(
            (
                current_id(record),
                record.repairs[0].plan.repairer,
                record.repaired,
                folder / HEAD.name,
            )
        )
    listed += [
        (
            kept.repair_id,
            kept.repairs[0].plan.repairer,
            kept.made,
            folder / head_name(kept.repair_id),
        )
        for kept in sorted(record.earlier_repairs, key=lambda one: one.made, reverse=True)
        if kept.repairs
    ]
    return [one for one in listed if one[3].is_file()]


def _on_sample(
    workspace: Workspace, row: int, which: tuple[str, str, str], file: Path, record: RunRecord
) -> RepairOnSample | None:
    samples, here = workspace.samples, np.array([row])
    dataset = samples.dataset
    try:
        head, names = read_head(file)
        fitting = head.reordered(names, dataset.class_names)
        probabilities = samples.by_blocks(FEATURES, here, fitting.probabilities)
        labels = dataset.labels[here]
        is_labelled = bool(dataset.is_labelled[row])
        criterion = workspace.criterion
        before = bool(criterion.failed(dataset, here)[0]) if is_labelled else None
        after = (
            bool(criterion.failed_predictions(probabilities, labels, dataset.class_names)[0])
            if is_labelled
            else None
        )
    except WeakspotError:
        return None
    code = int(np.argmax(probabilities[0]))
    repair_id, strategy, made = which
    return RepairOnSample(
        repair_id=repair_id,
        strategy=strategy,
        made=made,
        is_current=repair_id == current_id(record),
        answer=dataset.class_names[code],
        probability=float(probabilities[0, code]),
        was_failure=before,
        is_failure=after,
    )
