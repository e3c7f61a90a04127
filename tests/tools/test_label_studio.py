import csv
import json

import pytest
from tests.tools.made_bundle import made_bundle
from tests.tools.real_libraries import run_real

from weakspot.core.errors import ConfigError, DataError
from weakspot.data.open_source import open_source
from weakspot.tools.label_studio import read_annotations, write_tasks

CHECK_AND_CONVERT = """
import json, sys
from pathlib import Path
from label_studio_sdk.converter import Converter
from label_studio_sdk.label_interface import LabelInterface
folder, out = Path(sys.argv[1]), Path(sys.argv[2])
config = (folder / "labelling.xml").read_text()
interface = LabelInterface(config)
interface.validate()
tasks = json.loads((folder / "tasks.json").read_text())
checked = [interface.validate_task({"data": task["data"]}) for task in tasks]
predicted = [interface.validate_prediction(task["predictions"][0], return_errors=True) for task in tasks]
for number, task in enumerate(tasks):
    result = [{"id": "r", "from_name": "label", "to_name": "image", "type": "choices", "value": {"choices": ["disc"]}}]
    assert interface.validate_annotation({"result": result})
    task.update(id=number + 1, annotations=[{"id": number + 1, "result": result, "was_cancelled": False, "completed_by": 1}])
out.mkdir()
(out / "tasks.json").write_text(json.dumps(tasks))
converter = Converter(config, str(out), download_resources=False)
for name, kind in (("json", "JSON"), ("min", "JSON_MIN"), ("csv", "CSV")):
    converter.convert(str(out / "tasks.json"), str(out / name), kind, is_dir=False)
print("TOLD" + json.dumps({"checked": checked, "predicted": predicted, "labels": interface.get_control("label").labels}))
"""


@pytest.fixture(scope="module")
def exchanged(tmp_path_factory):
    """A bundle, what Label Studio's library says of its tasks, and the folder of finished labels in three formats."""
    folder = tmp_path_factory.mktemp("label-studio")
    bundle = made_bundle(folder / "images")
    written = write_tasks(bundle, folder / "out")
    printed = run_real(CHECK_AND_CONVERT, folder / "out", folder / "done", home=folder)
    return bundle, written, json.loads(printed.split("TOLD")[1]), folder / "done"


def test_write_tasks__real_library_accepts_interface_tasks_and_predictions(exchanged):
    _, written, told, _ = exchanged
    assert told["labels"] == ["disc", "square"]
    assert all(told["checked"])
    assert told["predicted"] == [[], []]
    assert "2 samples to label" in written.sentence
    assert "LABEL_STUDIO_LOCAL_FILES_DOCUMENT_ROOT=" in written.sentence


@pytest.mark.parametrize("name", ["json", "min", "csv"])
def test_read_annotations__what_the_real_converter_writes(exchanged, tmp_path, name):
    bundle, _, _, done = exchanged
    (source,) = (
        [path for path in (done / name).rglob("*") if path.is_file()]
        if (done / name).is_dir()
        else [done / name]
    )
    if name == "csv" and source.suffix != ".csv":
        source = source.rename(source.with_name("labels.csv"))
    written = read_annotations(source, tmp_path / "labels.csv")
    with (tmp_path / "labels.csv").open(newline="") as stream:
        lines = list(csv.DictReader(stream))
    ids = bundle.samples.dataset.sample_ids()
    assert [(line["sample_id"], line["label"]) for line in lines] == [
        (ids[3], "disc"),
        (ids[7], "disc"),
    ]
    assert "weakspot repair --labels" in written.sentence


def test_write_tasks__says_why_and_shows_evidence(tmp_path):
    bundle = made_bundle(tmp_path / "images")
    write_tasks(bundle, tmp_path / "out")
    first, second = json.loads((tmp_path / "out" / "tasks.json").read_text())
    assert first["data"]["why"] == "disc: green: is the label right?"
    assert first["data"]["present_label"] == "disc"
    assert first["meta"]["slices"][0]["gap"] == 0.85
    assert first["predictions"][0]["result"][0]["value"] == {"choices": ["square"]}
    assert first["predictions"][0]["score"] == pytest.approx(0.7)
    assert first["data"]["image"].startswith("/data/local-files/?d=")
    assert second["data"]["present_label"] == ""
    assert second["meta"]["slices"] == []


def test_write_tasks__nothing_to_label(tmp_path):
    with pytest.raises(DataError, match="nothing to label"):
        write_tasks(made_bundle(tmp_path / "images", to_label=()), tmp_path / "out")


def _task(labels, *, sample_id="a", cancelled=False):
    result = [
        {"type": "choices", "from_name": "label", "to_name": "image", "value": {"choices": labels}}
    ]
    return {
        "data": {"sample_id": sample_id, "image": "/data/local-files/?d=some%20folder/a.png"},
        "annotations": [{"result": result, "was_cancelled": cancelled}],
    }


def test_read_annotations__skipped_and_disputed_samples_are_left_out(tmp_path):
    tasks = [
        _task(["disc"]),
        _task(["disc"], sample_id="b", cancelled=True),
        _task(["square"], sample_id="c"),
        _task(["disc"], sample_id="c"),
    ]
    (tmp_path / "export.json").write_text(json.dumps(tasks))
    written = read_annotations(tmp_path / "export.json", tmp_path / "labels.jsonl")
    assert json.loads((tmp_path / "labels.jsonl").read_text()) == {
        "sample_id": "a",
        "path": "some folder/a.png",
        "label": "disc",
    }
    assert "disagree on 1 samples" in written.sentence
    assert "1 have no label yet" in written.sentence


def test_read_annotations__several_labels_a_sample(tmp_path):
    (tmp_path / "export.json").write_text(
        json.dumps([_task(["disc", "square"]), _task(["disc"], sample_id="b")])
    )
    read_annotations(tmp_path / "export.json", tmp_path / "labels.parquet")
    samples = list(open_source(str(tmp_path / "labels.parquet")).read())
    assert [sample.labels for sample in samples] == [("disc", "square"), ("disc",)]


@pytest.mark.parametrize(
    "content",
    [
        "{",
        '{"a": 1}',
        "[1]",
        "[]",
        '[{"data": {"image": "a"}, "annotations": [{"result": 1}, 2]}]',
        '[{"data": {}, "annotations": [{"result": []}]}]',
    ],
)
def test_read_annotations__what_it_cannot_read(tmp_path, content):
    (tmp_path / "export.json").write_text(content)
    with pytest.raises(DataError):
        read_annotations(tmp_path / "export.json", tmp_path / "labels.csv")


def test_read_annotations__target_must_be_a_table(tmp_path):
    (tmp_path / "export.json").write_text(json.dumps([_task(["disc"])]))
    with pytest.raises(ConfigError, match="extension"):
        read_annotations(tmp_path / "export.json", tmp_path / "labels.xlsx")
