import datasets
import numpy as np
import pyarrow.parquet as pq
import pytest
from huggingface_hub import DatasetCard, ModelCard, metadata_load
from tests.tools.made_bundle import TAG, made_bundle

from weakspot.core.dataset import dataset_from_columns
from weakspot.core.errors import DataError
from weakspot.core.samples import SampleSet
from weakspot.data.open_source import open_source
from weakspot.tools import huggingface
from weakspot.tools.huggingface import front_matter, write_dataset

CARD = """---
tags:
  - "weakspot"
model-index:
  - name: "shapes"
    results:
      - task:
          type: "image-classification"
        dataset:
          type: "shapes"
          name: "shapes"
        metrics:
          - type: "accuracy"
            value: 0.1
            name: "accuracy, disc: green"
---

# Card
"""


@pytest.fixture(scope="module")
def exported(tmp_path_factory):
    folder = tmp_path_factory.mktemp("hub")
    write_dataset(made_bundle(folder / "images", model_card=CARD), folder / "out")
    return folder / "out"


@pytest.fixture(scope="module")
def loaded(exported, tmp_path_factory):
    return datasets.load_dataset(str(exported), cache_dir=str(tmp_path_factory.mktemp("cache")))


def test_the_library_knows_splits_images_and_classes(loaded):
    assert {name: len(part) for name, part in loaded.items()} == {
        "train": 2,
        "validation": 2,
        "test": 2,
        "pool": 2,
    }
    features = loaded["train"].features
    assert isinstance(features["image"], datasets.Image)
    assert features["label"].names == ["disc", "square"]
    assert features["prediction"].names == ["disc", "square"]
    assert loaded["train"][1]["image"].size == (12, 9)
    assert loaded["train"][1]["image"].getpixel((0, 0)) == (0, 128, 0)


def test_predictions_slices_and_own_columns_travel(loaded):
    row = loaded["validation"][1]
    assert (row["label"], row["prediction"], row["failed"], row[TAG], row["colour"]) == (
        0,
        1,
        True,
        True,
        "green",
    )
    assert row["confidence"] == pytest.approx(0.7)
    assert loaded["pool"][0]["label"] is None
    assert loaded["pool"][0]["failed"] is None


def test_the_library_reads_both_cards(exported):
    card = DatasetCard.load(exported / "README.md")
    assert card.data.pretty_name == "shapes"
    assert card.data.size_categories == ["n<1K"]
    assert [one["split"] for one in card.data.configs[0]["data_files"]] == [
        "train",
        "validation",
        "test",
        "pool",
    ]
    assert "9 of 10" in card.text
    model = ModelCard.load(exported / "model-card" / "README.md")
    [result] = model.data.eval_results
    assert (result.metric_value, result.metric_name) == (0.1, "accuracy, disc: green")


def test_a_part_can_be_ingested_again(exported):
    [part] = (exported / "data").glob("test-*.parquet")
    samples = list(open_source(str(part)).read())
    assert [sample.labels for sample in samples] == [("square",), ("disc",)]
    assert samples[1].metadata[TAG] is True


def test_large_splits_become_several_files_and_old_ones_go(tmp_path, monkeypatch):
    bundle = made_bundle(tmp_path / "images")
    write_dataset(bundle, tmp_path / "out")
    monkeypatch.setattr(huggingface, "SAMPLES_A_FILE", 1)
    write_dataset(bundle, tmp_path / "out")
    names = sorted(path.name for path in (tmp_path / "out" / "data").iterdir())
    assert len(names) == 8
    assert names[:2] == ["pool-00000-of-00002.parquet", "pool-00001-of-00002.parquet"]


def test_several_labels_become_lists_of_classes(tmp_path):
    many = dataset_from_columns(
        class_names=["disc", "square"],
        label_lists=[[0, 1], [], None],
        probabilities=np.array([[0.9, 0.8], [0.1, 0.6], [0.2, 0.2]], dtype=np.float32),
        thresholds=np.array([0.5, 0.5]),
    )
    unknown = np.zeros(3, dtype=np.bool_)
    samples = SampleSet(dataset=many, rows=np.arange(3))
    write_dataset(
        made_bundle(tmp_path, samples=samples, slices=(), has_failed=unknown, is_judged=unknown),
        tmp_path / "out",
    )
    part = datasets.load_dataset(str(tmp_path / "out"), cache_dir=str(tmp_path / "cache"))["test"]
    assert part["labels"][:] == [[0, 1], [], None]
    assert part["predictions"][:] == [[0, 1], [1], []]
    assert part.features["labels"].feature.names == ["disc", "square"]


def test_a_missing_image_is_named(tmp_path):
    bundle = made_bundle(tmp_path / "images")
    (tmp_path / "images" / "0.png").unlink()
    with pytest.raises(DataError, match="cannot be read"):
        write_dataset(bundle, tmp_path / "out")
    assert not list((tmp_path / "out").rglob("*.parquet"))


def test_groups_stay_small(exported, tmp_path, monkeypatch):
    monkeypatch.setattr(huggingface, "SAMPLES_A_GROUP", 1)
    written = write_dataset(made_bundle(tmp_path / "images"), tmp_path / "out")
    assert pq.ParquetFile(written.files[-1]).num_row_groups == 2


CONTENT = {
    "name": 'a: "b" # no',
    "empty": [],
    "nested": {"numbers": [1, 2.5, None, True], "deep": [{"a": "é\n-", "b": [{"c": "1"}]}, "x"]},
}


def test_what_is_written_is_read_by_the_hub_library(tmp_path):
    path = tmp_path / "README.md"
    path.write_text(front_matter(CONTENT) + "\n# Card\n")
    assert metadata_load(path) == CONTENT
