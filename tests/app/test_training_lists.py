import csv

import numpy as np

from weakspot.app.training_lists import write_training_lists
from weakspot.core.dataset import dataset_from_columns
from weakspot.core.training_sets import TrainingSelection

SPLITS = ["validation", "train", "train", "pool", "train", "synthetic"]
LOCATIONS = ["a/0.png", "https://me:secret@example.org/1.png?token=abc", None, "a, b/3.png", "a/4.png", "a/5.png"]


def _rows(path):
    with path.open(newline="") as stream:
        return list(csv.reader(stream))


def test_write_training_lists__single_label(tmp_path):
    dataset = dataset_from_columns(
        class_names=["apple", "pear"], labels=[0, 1, 0, 1, 0, 1], splits=SPLITS, locations=LOCATIONS, sample_ids=list("uvwxyz")
    )
    selection = TrainingSelection(rows=np.array([5, 4, 1, 3]), weights=np.array([0.1, 1 / 3, 3.0, 0.5]), note="")
    files = write_training_lists(tmp_path, selection, dataset)
    assert [file.name for file in files] == ["training_weights.csv", "training_rows.txt"]
    assert _rows(files[0]) == [
        ["sample_id", "picture", "label", "weight", "source"],
        ["v", "https://example.org/1.png", "pear", "3.0", "train"],
        ["x", "a, b/3.png", "pear", "0.5", "pool"],
        ["y", "a/4.png", "apple", repr(1 / 3), "train"],
        ["z", "a/5.png", "pear", "0.1", "synthetic"],
    ]
    assert files[1].read_text() == "0\n2\n"


def test_write_training_lists__sample_without_picture(tmp_path):
    dataset = dataset_from_columns(
        class_names=["apple"], labels=[0] * 6, splits=SPLITS, locations=LOCATIONS, sample_ids=list("uvwxyz")
    )
    selection = TrainingSelection(rows=np.array([2]), weights=np.ones(1), note="")
    assert _rows(write_training_lists(tmp_path, selection, dataset)[0])[1] == ["w", "", "apple", "1.0", "train"]


def test_write_training_lists__several_labels(tmp_path):
    for names, expected in ((["wet", "red"], ["wet;red", ""]), (["wet|damp", "red"], ['["wet|damp", "red"]', "[]"])):
        dataset = dataset_from_columns(class_names=names, label_lists=[[0, 1], []], splits=["train"] * 2)
        selection = TrainingSelection(rows=np.array([0, 1]), weights=np.ones(2), note="")
        assert [row[2] for row in _rows(write_training_lists(tmp_path, selection, dataset)[0])[1:]] == expected
