"""Which samples people should label or look at, for the labelling tools of neighbours."""

from collections.abc import Iterator

import numpy as np

from weakspot.app import loop
from weakspot.app.label_tables import read_table
from weakspot.app.labelling import LIST_FILE, WHY
from weakspot.app.project import Project
from weakspot.core.dataset import Split
from weakspot.core.run import RunRecord
from weakspot.core.samples import SampleSet
from weakspot.neighbours.bundle import ListedSample
from weakspot.repair.labelling import chosen_for
from weakspot.verify.labels import LabelChecker

MOST_FROM_POOL = 1000


def samples_to_label(project: Project, record: RunRecord, samples: SampleSet) -> tuple[ListedSample, ...]:
    """Return suspect labels of confirmed slices, then what a repair waits for, else unlabelled pool samples inside slices."""
    listed = [*_suspects(project, record, samples), *(_waiting(project, record, samples) or _pool(record, samples))]
    return tuple({one.row: one for one in reversed(listed)}[row] for row in dict.fromkeys(one.row for one in listed))


def _suspects(project: Project, record: RunRecord, samples: SampleSet) -> Iterator[ListedSample]:
    dataset = samples.dataset
    training = samples.only(dataset.rows_of(Split.TRAIN))
    evaluation = samples.only(loop.used_rows(samples, project.settings))
    criterion = project.settings.failure.criterion()
    for found, evidence in record.published():
        if evidence.labels is None or not evidence.labels.n_suspect:
            continue
        rows = LabelChecker().suspect_rows(found, training=training, evaluation=evaluation, criterion=criterion)
        for row in rows.tolist():
            yield ListedSample(row=row, why=f"{found.title}: is the label right?")


def _waiting(project: Project, record: RunRecord, samples: SampleSet) -> list[ListedSample]:
    path = project.store.runs.run_folder(record.run_id) / LIST_FILE
    if not path.exists():
        return []
    rows = {name: row for row, name in enumerate(samples.dataset.sample_ids())}
    lines = [line for line in read_table(path).lines if not line.label and line.cells.get("sample_id", "") in rows]
    return [ListedSample(row=rows[line.cells["sample_id"]], why=line.cells.get(WHY, "")) for line in lines]


def _pool(record: RunRecord, samples: SampleSet) -> list[ListedSample]:
    dataset = samples.dataset
    pool = dataset.rows_of(Split.POOL)
    unlabelled = np.asarray(pool[~dataset.is_labelled[pool]], dtype=np.int64)
    titles = chosen_for(unlabelled, record.findings(), samples) if len(unlabelled) else {}
    return [ListedSample(row=row, why=title) for row, title in sorted(titles.items())[:MOST_FROM_POOL]]
