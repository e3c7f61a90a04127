import csv
import json
from types import SimpleNamespace

import numpy as np
import onnx
import pytest
import torch
from onnx import helper, numpy_helper
from tests.build import slice_of

from weakspot.core.dataset import dataset_from_columns
from weakspot.core.errors import DataError, ModelError
from weakspot.core.heads import Head, TrainingSelection
from weakspot.core.repairs import RepairPlan
from weakspot.core.samples import SampleSet
from weakspot.models.callable_classifier import CallableClassifier
from weakspot.models.files import read_head
from weakspot.models.onnx.classifier import OnnxClassifier
from weakspot.models.torch_sampler import WeightedSamples
from weakspot.models.training_weights import read_training_weights
from weakspot.repair.bench import RepairBench
from weakspot.repair.export import export_repair, read_plan, write_training_lists

NAMES = ("apple", "pear")
HEAD = Head(
    weights=np.array([[1.0, -2.0, 0.5], [0.25, 3.0, -1.0]], np.float32),
    bias=np.array([0.5, -0.5], np.float32),
)
SPLITS = ["train", "test", "train", "pool", "synthetic", "train"]
SELECTION = TrainingSelection(
    rows=np.array([5, 0, 3, 4]), weights=np.array([2.0, 0.5, 0.5, 1.0]), note="By hand."
)
SLICE = slice_of("green")
PLAN = RepairPlan(slice_ids=(SLICE.slice_id,), repairer="slice-balanced", seed=7)


def _samples():
    dataset = dataset_from_columns(
        class_names=NAMES,
        labels=[0, 1, 1, 0, 0, 1],
        splits=SPLITS,
        sample_ids=[f"id{number}" for number in range(6)],
        locations=[f"images/{number}.png" for number in range(6)],
        metadata={"green": [True] * 6},
    )
    return SampleSet(dataset=dataset, rows=np.arange(6))


def _network(path, kind=np.float32):
    nodes = [
        helper.make_node("GlobalAveragePool", ["x"], ["p"]),
        helper.make_node("Flatten", ["p"], ["f"]),
        helper.make_node("Gemm", ["f", "w", "b"], ["y"], transB=1),
    ]
    number = helper.np_dtype_to_tensor_dtype(np.dtype(kind))
    constants = {"w": np.array([[1, 0, 0], [0, 1, 0]], kind), "b": np.zeros(2, kind)}
    graph = helper.make_graph(
        nodes,
        "tiny",
        [helper.make_tensor_value_info("x", number, ["n", 3, 4, 4])],
        [helper.make_tensor_value_info("y", number, ["n", 2])],
        [numpy_helper.from_array(value, name) for name, value in constants.items()],
    )
    onnx.save(
        helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9),
        str(path),
    )
    return path


def _export_repair(folder, classifier=None, **changes):
    bench = RepairBench(SimpleNamespace(samples=_samples(), classifier=classifier), None, (SLICE,))
    given = {"head": HEAD, "selection": SELECTION, "plan": PLAN}
    return export_repair(folder, bench, **(given | changes))


def test_export_repair__everything_of_an_onnx_classifier(tmp_path):
    path = _network(tmp_path / "m.onnx")
    handed = _export_repair(tmp_path / "out", OnnxClassifier(path=path, class_names=NAMES))
    assert [file.relative_to(tmp_path / "out").as_posix() for file in handed[0]] == [
        "model/m_repaired.onnx",
        "README.txt",
        "plan.json",
        "preprocessing.json",
        "repaired_head.safetensors",
        "training_rows.txt",
        "training_weights.csv",
    ]
    assert handed[1] == ()
    assert all(file.is_file() for file in handed[0])
    np.testing.assert_array_equal(
        OnnxClassifier(path=handed[0][0], class_names=NAMES).head.weights, HEAD.weights
    )
    head, names = read_head(tmp_path / "out" / "repaired_head.safetensors")
    np.testing.assert_array_equal(head.weights, HEAD.weights)
    assert names == NAMES
    assert read_plan(tmp_path / "out" / "plan.json") == PLAN.model_copy(update={"slices": (SLICE,)})
    text = (tmp_path / "out" / "README.txt").read_text()
    assert "model/m_repaired.onnx: your classifier" in text
    assert "group_objectives.json" not in text
    assert sorted(found.name for found in tmp_path.iterdir()) == ["m.onnx", "out"]


def test_export_repair__rows_go_to_the_classifiers_own_order(tmp_path):
    classifier = OnnxClassifier(path=_network(tmp_path / "m.onnx"), class_names=["pear", "apple"])
    handed = _export_repair(tmp_path / "out", classifier)
    written = OnnxClassifier(path=handed[0][0], class_names=["pear", "apple"]).head
    np.testing.assert_array_equal(written.weights, HEAD.weights[::-1])
    np.testing.assert_array_equal(written.bias, HEAD.bias[::-1])


def test_export_repair__rounding_is_said(tmp_path):
    handed = _export_repair(
        tmp_path / "out", OnnxClassifier(path=_network(tmp_path / "m.onnx", np.float16))
    )
    assert handed[1] == (
        "The classifier keeps its last layer in float16, so the head was rounded to that.",
    )
    assert handed[1][0] in (tmp_path / "out" / "README.txt").read_text()


def test_export_repair__classifier_that_cannot_be_written_is_a_note(tmp_path):
    path = _network(tmp_path / "m.onnx")
    wide = Head(weights=np.zeros((2, 4), np.float32), bias=np.zeros(2, np.float32))
    function = CallableClassifier(
        function=lambda images: np.full((len(images), 2), 0.5), class_names=NAMES
    )
    cases = {
        "only its predictions": (None, HEAD),
        "kind (CallableClassifier) cannot be written": (function, HEAD),
        "was not written: The head does not fit": (OnnxClassifier(path=path), wide),
        "do not have the same classes": (OnnxClassifier(path=path, class_names=["a", "b"]), HEAD),
    }
    for number, (message, (classifier, head)) in enumerate(cases.items()):
        handed = _export_repair(tmp_path / str(number), classifier, head=head)
        assert message in handed[1][0]
        assert message in (tmp_path / str(number) / "README.txt").read_text()
        assert len(handed[0]) == 5 + isinstance(classifier, OnnxClassifier)
        assert not (tmp_path / str(number) / "model").exists()


def test_export_repair__nothing_is_overwritten(tmp_path):
    home = tmp_path / "home"
    home.mkdir()
    (home / "plan.json").write_text("mine")
    (home / "notes").write_text("mine")
    with pytest.raises(ModelError, match=r"nothing is overwritten: plan\.json"):
        _export_repair(home)
    assert sorted(path.name for path in home.iterdir()) == ["notes", "plan.json"]
    (home / "plan.json").unlink()
    assert len(_export_repair(home)[0]) == 5
    assert (home / "notes").read_text() == "mine"
    with pytest.raises(ModelError, match=r"README\.txt, plan\.json, repaired_head\.safetensors"):
        _export_repair(home)
    (home / "model").mkdir()
    assert [path.name for path in tmp_path.iterdir()] == ["home"]


def test_export_repair__beside_the_users_own_model(tmp_path):
    """The user's own folder is called model and holds a file of the very name that would be written."""
    (tmp_path / "model").mkdir()
    path = _network(tmp_path / "model" / "m.onnx")
    (tmp_path / "model" / "m_repaired.onnx").write_text("mine")
    with pytest.raises(ModelError, match=r"nothing is overwritten: model/m_repaired\.onnx"):
        _export_repair(tmp_path, OnnxClassifier(path=path, class_names=NAMES))
    assert sorted(str(found.relative_to(tmp_path)) for found in tmp_path.rglob("*")) == [
        "model",
        "model/m.onnx",
        "model/m_repaired.onnx",
    ]


def test_export_repair__all_or_nothing(tmp_path):
    measured = TrainingSelection(rows=np.array([0, 1]), weights=np.ones(2), note="")
    with pytest.raises(DataError, match="1 samples are for measuring"):
        _export_repair(tmp_path / "out", selection=measured)
    assert list(tmp_path.iterdir()) == []


def test_export_repair__weights_feed_the_sampler(tmp_path):
    _export_repair(tmp_path / "out")
    table = read_training_weights(tmp_path / "out" / "training_weights.csv")
    images = ["images/3.png", "images/9.png", "images/0.png", "images/4.png", "images/5.png"]
    sampler = WeightedSamples(tmp_path / "out" / "training_weights.csv", ids=images, n_draws=400)
    drawn = torch.bincount(torch.tensor(list(sampler)), minlength=5) / 400
    assert table.sample_ids == ("id0", "id3", "id4", "id5")
    np.testing.assert_allclose(drawn.numpy(), [0.125, 0.0, 0.125, 0.25, 0.5], atol=0.07)


def test_export_repair__contests_are_written(tmp_path):
    contested = TrainingSelection(
        rows=SELECTION.rows,
        weights=SELECTION.weights,
        note="",
        group_objectives=((np.array([0, 2]), np.array([1])),),
    )
    handed = _export_repair(tmp_path / "out", selection=contested)
    assert tmp_path / "out" / "group_objectives.json" in handed[0]
    assert json.loads((tmp_path / "out" / "group_objectives.json").read_text()) == [
        {"weight": 3.0, "groups": [["id5", "id3"], ["id0"]]}
    ]
    assert "group_objectives.json" in (tmp_path / "out" / "README.txt").read_text()


LISTED_SPLITS = ["validation", "train", "train", "pool", "train", "synthetic"]
LOCATIONS = [
    "a/0.png",
    "https://me:secret@example.org/1.png?token=abc",
    None,
    "a, b/3.png",
    "a/4.png",
    "a/5.png",
]


def _rows(path):
    with path.open(newline="") as stream:
        return list(csv.reader(stream))


def test_write_training_lists__single_label(tmp_path):
    dataset = dataset_from_columns(
        class_names=["apple", "pear"],
        labels=[0, 1, 0, 1, 0, 1],
        splits=LISTED_SPLITS,
        locations=LOCATIONS,
        sample_ids=list("uvwxyz"),
    )
    selection = TrainingSelection(
        rows=np.array([5, 4, 1, 3]), weights=np.array([0.1, 1 / 3, 3.0, 0.5]), note=""
    )
    files = write_training_lists(tmp_path, selection, dataset)
    assert [file.name for file in files] == ["training_weights.csv", "training_rows.txt"]
    assert _rows(files[0]) == [
        ["sample_id", "image", "label", "weight", "source", "key"],
        ["v", "https://example.org/1.png", "pear", "3.0", "train", "v"],
        ["x", "a, b/3.png", "pear", "0.5", "pool", "x"],
        ["y", "a/4.png", "apple", repr(1 / 3), "train", "y"],
        ["z", "a/5.png", "pear", "0.1", "synthetic", "z"],
    ]
    assert files[1].read_text() == "0\n2\n"


def test_write_training_lists__several_labels(tmp_path):
    for names, expected in (
        (["wet", "red"], ["wet;red", ""]),
        (["wet|damp", "red"], ['["wet|damp", "red"]', "[]"]),
    ):
        dataset = dataset_from_columns(
            class_names=names, label_lists=[[0, 1], []], splits=["train"] * 2
        )
        selection = TrainingSelection(rows=np.array([0, 1]), weights=np.ones(2), note="")
        assert [
            row[2] for row in _rows(write_training_lists(tmp_path, selection, dataset)[0])[1:]
        ] == expected
