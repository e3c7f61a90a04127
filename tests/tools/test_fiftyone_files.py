import json

import numpy as np
import pytest
from tests.tools.made_bundle import TAG, TITLE, made_bundle
from tests.tools.real_libraries import run_real

from weakspot.core.dataset import dataset_from_columns
from weakspot.core.errors import DataError
from weakspot.core.samples import SampleSet
from weakspot.data.locations import read_location
from weakspot.data.open_source import open_source
from weakspot.tools import fiftyone
from weakspot.tools.fiftyone import read_dataset, write_dataset

LOAD_AND_EDIT = """
import json, sys
import fiftyone as fo
dataset = fo.Dataset.from_dir(sys.argv[1], dataset_type=fo.types.FiftyOneDataset)
view = dataset.load_saved_view(sys.argv[3])
first = dataset.first()
told = {
    "n": len(dataset), "tags": dataset.count_sample_tags(),
    "views": dataset.list_saved_views(), "members": view.values("sample_id"),
    "described": dataset.get_saved_view_info(sys.argv[3])["description"], "gap": dataset.info["slices"][0]["gap"],
    "classes": dataset.default_classes, "labels": dataset.values("ground_truth.label"),
    "said": dataset.values("predictions.label"),
    "sure": first.predictions.confidence, "logits": [float(x) for x in first.predictions.logits],
    "embedding": [float(x) for x in first.embedding], "colours": dataset.values("colour"), "shares": dataset.values("box_share"),
    "size": [first.metadata.width, first.metadata.height], "own_tags": dataset.values("meta_tags"),
    "are_there": [__import__("os").path.exists(path) for path in dataset.values("filepath")],
}
first.ground_truth.label = "square"
first.tags = first.tags + ["look again"]
first.save()
dataset.export(sys.argv[2], dataset_type=fo.types.FiftyOneDataset, export_media=True)
print("TOLD" + json.dumps(told))
"""


@pytest.fixture(scope="module")
def exchanged(tmp_path_factory):
    """A bundle, what FiftyOne says of its export, and the folder into which FiftyOne wrote it after an edit."""
    folder = tmp_path_factory.mktemp("fiftyone")
    bundle = made_bundle(folder / "images")
    written = write_dataset(bundle, folder / "out")
    printed = run_real(LOAD_AND_EDIT, folder / "out", folder / "back", TITLE, home=folder)
    return bundle, written, json.loads(printed.split("TOLD")[1]), folder / "back"


def test_write_dataset__real_library_loads_samples_views_and_embeddings(exchanged):
    bundle, written, told, _ = exchanged
    dataset = bundle.samples.dataset
    assert told["n"] == 8
    assert all(told["are_there"])
    assert told["tags"] == {"train": 2, "validation": 2, "test": 2, "pool": 2, "failed": 3, TAG: 3}
    assert told["views"] == [TITLE, "failed"]
    assert told["members"] == dataset.sample_ids(np.array([1, 3, 5]))
    assert "fails 90% (9 of 10)" in told["described"]
    assert told["gap"] == 0.85
    assert told["classes"] == ["disc", "square"]
    assert told["labels"] == ["disc", "disc", "square", "disc", "square", "disc", None, None]
    assert told["said"][:2] == ["disc", "square"]
    assert told["sure"] == pytest.approx(0.9)
    assert np.exp(told["logits"]) == pytest.approx([0.9, 0.1])
    assert told["embedding"] == pytest.approx(bundle.embeddings()[0].tolist())
    assert told["colours"] == dataset.metadata("colour").to_pylist()
    assert told["shares"] == [None, 0, 1, 2, 3, 4, 5, 6]
    assert told["own_tags"] == ["own"] * 8
    assert told["size"] == [12, 9]
    assert "from_dir" in written.sentence


def test_read_dataset__takes_what_people_changed_in_the_real_library(exchanged, tmp_path):
    bundle, _, _, back = exchanged
    written = read_dataset(back, tmp_path / "manifest.parquet")
    samples = list(open_source(str(tmp_path / "manifest.parquet")).read())
    assert len(samples) == 8
    assert "2 of them have no label" in written.sentence
    assert [sample.labels for sample in samples[:3]] == [("square",), ("disc",), ("square",)]
    assert [sample.split for sample in samples] == [
        split for split in ("train", "validation", "test", "pool") for _ in range(2)
    ]
    assert [sample.key for sample in samples] == bundle.samples.dataset.sample_ids()
    assert samples[0].metadata["tags"] == "look again"
    assert samples[1].metadata["tags"] is None
    assert samples[1].metadata["colour"] == "green"
    assert samples[1].predictions == ("square",)
    original = read_location(bundle.samples.dataset.locations()[1])
    assert read_location(samples[1].location) == original


def test_write_dataset__images_in_packs_become_files_others_are_pointed_to(tmp_path):
    bundle = made_bundle(tmp_path / "images")
    write_dataset(bundle, tmp_path / "out")
    samples = json.loads((tmp_path / "out" / "samples.json").read_text())["samples"]
    assert samples[0]["filepath"] == str(tmp_path / "images" / "0.png")
    assert samples[1]["filepath"] == f"images/{bundle.samples.dataset.sample_ids()[1]}.png"
    write_dataset(made_bundle(tmp_path / "images", copies_images=True), tmp_path / "copied")
    copied = json.loads((tmp_path / "copied" / "samples.json").read_text())["samples"]
    assert all((tmp_path / "copied" / sample["filepath"]).exists() for sample in copied)
    assert all(sample["filepath"].startswith("images/") for sample in copied)


def test_write_dataset__the_same_twice(tmp_path):
    bundle = made_bundle(tmp_path / "images")
    for name in ("a", "b"):
        write_dataset(bundle, tmp_path / name)
    assert (tmp_path / "a" / "metadata.json").read_bytes() == (
        tmp_path / "b" / "metadata.json"
    ).read_bytes()
    assert (tmp_path / "a" / "samples.json").read_bytes() == (
        tmp_path / "b" / "samples.json"
    ).read_bytes()


def test_write_dataset__many_embeddings_stand_beside(tmp_path, monkeypatch):
    monkeypatch.setattr(fiftyone, "MAX_EMBEDDING_BYTES", 8 * 4 * 4)
    bundle = made_bundle(tmp_path / "images")
    written = write_dataset(bundle, tmp_path / "out")
    assert written.files[2].name == "embeddings.npy"
    assert np.array_equal(np.load(written.files[2]), bundle.embeddings())
    sample = json.loads((tmp_path / "out" / "samples.json").read_text())["samples"][0]
    assert "embedding" not in sample
    assert "logits" in sample["predictions"]


def test_write_dataset__several_labels(tmp_path):
    made = made_bundle(tmp_path / "images")
    dataset = dataset_from_columns(
        class_names=["disc", "square"],
        label_lists=[[0], [0, 1], [], None],
        locations=made.samples.dataset.locations()[:4],
        predicted_matrix=np.array([[True, False]] * 4),
    )
    samples = SampleSet(dataset=dataset, rows=np.arange(4))
    bundle = made_bundle(
        tmp_path / "images",
        samples=samples,
        slices=(),
        has_failed=np.zeros(4, dtype=bool),
        is_judged=np.zeros(4, dtype=bool),
    )
    write_dataset(bundle, tmp_path / "out")
    read_dataset(tmp_path / "out", tmp_path / "manifest.parquet")
    samples = list(open_source(str(tmp_path / "manifest.parquet")).read())
    assert [sample.labels for sample in samples] == [("disc",), ("disc", "square"), (), ()]
    assert samples[0].predictions == ("disc",)


def test_write_dataset__no_images__says_so(tmp_path):
    dataset = dataset_from_columns(class_names=["disc"], labels=[0])
    samples = SampleSet(dataset=dataset, rows=np.arange(1))
    bundle = made_bundle(
        tmp_path,
        samples=samples,
        slices=(),
        has_failed=np.zeros(1, dtype=bool),
        is_judged=np.zeros(1, dtype=bool),
    )
    with pytest.raises(DataError, match="No sample has an image"):
        write_dataset(bundle, tmp_path / "out")


def test_read_dataset__fields_of_unexpected_kinds_are_passed_over(tmp_path):
    sample = {
        "filepath": "a.png",
        "tags": 7,
        "ground_truth": {"_cls": "Classifications", "classifications": [1]},
        "n": 10**30,
    }
    (tmp_path / "samples.json").write_text(json.dumps({"samples": [sample], "more": 1}))
    read_dataset(tmp_path, tmp_path / "manifest.parquet")
    (found,) = open_source(str(tmp_path / "manifest.parquet")).read()
    assert (found.labels, found.metadata) == ((), {"n": str(10**30)})


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, "no samples.json"),
        ('{"samples": []}', "no samples"),
        ('{"samples": [{"tags": []}]}', "no filepath"),
        (
            '{"samples": [{"filepath": "a", "a": {"_cls": "Classification"}, "b": {"_cls": "Classification"}}]}',
            "which field",
        ),
        ('{"samples": [', "no JSON object"),
    ],
)
def test_read_dataset__what_it_cannot_read(tmp_path, content, message):
    if content is not None:
        (tmp_path / "samples.json").write_text(content)
    with pytest.raises(DataError, match=message):
        read_dataset(tmp_path, tmp_path / "manifest.csv")
    assert not (tmp_path / "manifest.csv").exists()
