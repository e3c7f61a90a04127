import csv
import json

import numpy as np

from weakspot.core.dataset import dataset_from_columns
from weakspot.core.heads import TrainingSelection
from weakspot.core.repairs import GainEstimate, RepairPlan, SliceNeed
from weakspot.core.samples import SampleSet
from weakspot.repair.collecting import PoolRows, write_collected


def _lines(path):
    with path.open(newline="", encoding="utf-8") as stream:
        return list(csv.DictReader(stream))


def _need(found, **changes):
    given = {
        "slice_id": found.slice_id,
        "title": found.title,
        "rate_inside": 0.5,
        "rate_outside": 0.1,
        "n_inside": 20,
        "n_outside": 80,
        "n_evaluation": 400,
    }
    return SliceNeed(**{**given, **changes})


def _written(folder, found, samples, rows, *, needs=None, selections=None):
    own = PoolRows(
        found=found,
        rows=np.array(rows, dtype=np.int64),
        is_labelled=samples.dataset.is_labelled[rows],
        is_wrong=np.zeros(len(rows), dtype=np.bool_),
    )
    return write_collected(
        folder,
        samples,
        plan=RepairPlan(slice_ids=(found.slice_id,), repairer="slice-balanced"),
        pool=(own,),
        needs=needs or (_need(found),),
        selections=selections or {},
        notes=("No head.",),
    )


def test_write_collected__several_labels__are_shown_and_so_are_predictions(tmp_path, make_slice):
    dataset = dataset_from_columns(
        class_names=["apple", "wet"],
        label_lists=[[0, 1], None],
        splits=["pool"] * 2,
        metadata={"green": [True, True]},
        probabilities=np.array([[0.9, 0.8], [0.2, 0.7]], dtype=np.float32),
    )
    samples = SampleSet(dataset=dataset, rows=np.arange(2))
    _written(tmp_path / "out", make_slice(), samples, [0, 1])
    first, second = _lines(tmp_path / "out" / "to_collect.csv")
    assert (first["label"], first["prediction"], first["is_wrong"]) == (
        "apple;wet",
        "apple|wet",
        "no",
    )
    assert (second["label"], second["prediction"], second["is_wrong"]) == ("", "wet", "")
    assert (first["rank"], second["rank"], first["column green"]) == ("1", "2", "True")


def test_write_collected__first_strategy_at_the_top_others_below(tmp_path, make_slice, training):
    rows = training.rows
    selections = {
        name: TrainingSelection(rows=rows, weights=np.full(len(rows), 1.0), note=f"By {name}.")
        for name in ("slice-balanced", "just-train-twice")
    }
    files = _written(tmp_path / "out", make_slice(), training, [], selections=selections)
    names = {path.relative_to(tmp_path / "out").as_posix() for path in files}
    assert {"training_weights.csv", "weights/just-train-twice/training_weights.csv"} <= names
    assert "to_collect.csv" not in names
    text = (tmp_path / "out" / "README.txt").read_text(encoding="utf-8")
    assert "slice-balanced: By slice-balanced." in text
    assert "to_collect.csv" not in text
    assert json.loads((tmp_path / "out" / "plan.json").read_text())["plan"]["slices"]


def test_write_collected__how_many__estimates_are_marked(tmp_path, make_slice, training):
    found = make_slice()
    need = _need(found, estimates=(GainEstimate(gain=0.2, n_rows=70),), n_training=5, n_to_match=9)
    _written(tmp_path / "out", found, training, [], needs=(need,))
    told = {
        line["what"]: (line["value"], line["kind"])
        for line in _lines(tmp_path / "out" / "how_many.csv")
    }
    assert told["rows to add for a failure rate lower by 0.2000"] == ("70", "estimate")
    assert told["rows to add for the share that it has in evaluation"] == ("9", "counted")
    assert told["failure rate inside"] == ("0.5", "measured")
    what = "fall of the failure rate over all rows if it failed as seldom as the rest"
    assert told[what] == ("0.02", "estimate")
