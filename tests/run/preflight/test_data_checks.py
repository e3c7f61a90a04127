from dataclasses import replace

import numpy as np

from weakspot.core.dataset import Task, dataset_from_columns
from weakspot.core.run import CheckState
from weakspot.run.ingestion import IngestResult
from weakspot.run.preflight.stage import check_data
from weakspot.run.settings import Settings

SUMMARY = IngestResult(
    source="predictions: t.csv",
    n_samples=120,
    n_unlabelled=0,
    class_names=("a", "b", "c"),
    task=Task.SINGLE_LABEL,
    per_split={"train": 60, "validation": 60},
    quarantined={},
    n_duplicated=0,
    n_across_splits=0,
    n_conflicting=0,
    has_predictions=True,
)


def _data(predictions=None, *, splits=("train", "validation"), class_names=("a", "b", "c")):
    labels = np.arange(120) % 3
    return dataset_from_columns(
        class_names=class_names,
        labels=labels,
        splits=[splits[number // 3 % 2] for number in range(120)],
        predictions=labels if predictions is None else predictions(labels),
    )


def _checked(dataset, summary=SUMMARY, **options):
    return {check.check: check for check in check_data(dataset, summary, Settings(), **options)}


def test_check_data__a_table_without_images():
    found = _checked(_data())
    assert list(found) == [
        "splits",
        "class names",
        "class counts",
        "files",
        "class order",
        "accuracy",
    ]
    assert {check.state for check in found.values()} == {CheckState.OK}


def test_check_data__predictions_under_other_names():
    check = _checked(_data(lambda labels: (labels + 1) % 3))["class order"]
    assert check.state is CheckState.PROBLEM
    assert check.fix.startswith("Name the predictions anew")


def test_check_data__what_the_ingest_found():
    summary = replace(
        SUMMARY, n_dealt=120, quarantined={"truncated": 3}, n_groups=9, n_groups_across_splits=2
    )
    found = _checked(_data(), summary)
    assert found["splits"].short.startswith("splits dealt at random")
    assert found["files"].short == "3 files set aside"
    assert found["groups across splits"].short == "2 groups in several splits"


def test_check_data__classes_without_samples_are_not_few():
    found = _checked(_data(class_names=("a", "b", "c", "d")))
    assert found["extra classes"].state is CheckState.NOTICE
    assert found["class counts"].state is CheckState.OK


def test_check_data__several_labels_a_sample():
    matrix = np.arange(120)[:, None] % 3 == np.arange(3)
    dataset = dataset_from_columns(
        class_names=("a", "b", "c"),
        label_lists=[[number % 3] for number in range(120)],
        splits=["train", "validation"] * 60,
        predicted_matrix=matrix,
    )
    assert list(_checked(dataset)) == ["splits", "class names", "class counts", "files"]
