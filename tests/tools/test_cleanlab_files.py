import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.tools.made_bundle import TAG, made_bundle
from tests.tools.real_libraries import run_real, run_there

from weakspot.core.dataset import dataset_from_columns
from weakspot.core.errors import ConfigError, DataError
from weakspot.core.samples import EmbeddingSpace, SampleSet
from weakspot.data.open_source import open_source
from weakspot.tools.cleanlab import SUSPECT, read_issues, write_issues

N, WRONG, MATCHED_CONTROL = 120, 7, (11, 12)
MASK = """
import sys, numpy as np
from cleanlab.filter import find_label_issues
folder = sys.argv[1]
labels, sure = np.load(folder + "/labels.npy"), np.load(folder + "/pred_probs.npy")
np.save(folder + "/mask.npy", find_label_issues(labels, sure, n_jobs=1))
np.save(folder + "/ranked.npy", find_label_issues(labels, sure, return_indices_ranked_by="self_confidence", n_jobs=1))
"""


def _bundle(folder):
    """120 samples of two classes; one validation label is wrong, two embeddings are the same, 20 are for training."""
    random = np.random.default_rng(5)
    truth = np.arange(N) % 2
    labels = truth.copy()
    labels[20 + WRONG] = 1 - truth[20 + WRONG]
    sure = np.where(truth == 1, 0.92, 0.08) + random.uniform(-0.05, 0.05, N)
    embeddings = random.normal(size=(N, 6)).astype(np.float32) + 4 * truth[:, None]
    embeddings[20 + MATCHED_CONTROL[1]] = embeddings[20 + MATCHED_CONTROL[0]]
    dataset = dataset_from_columns(
        class_names=["disc", "square"],
        labels=labels,
        splits=["train"] * 20 + ["validation"] * (N - 20),
        locations=[str(folder / f"{number}.png") for number in range(N)],
        probabilities=np.stack([1 - sure, sure], axis=1).astype(np.float32),
    )
    samples = SampleSet(
        dataset=dataset,
        rows=np.arange(N),
        spaces={"clip": EmbeddingSpace(encoder_id="made", embeddings=embeddings)},
    )
    nobody = np.zeros(N, dtype=np.bool_)
    return made_bundle(
        folder, samples=samples, slices=(), has_failed=nobody, is_judged=nobody, to_label=()
    )


@pytest.fixture(scope="module")
def exported(tmp_path_factory):
    folder = tmp_path_factory.mktemp("cleanlab")
    written = write_issues(_bundle(folder / "images"), folder / "out")
    home = tmp_path_factory.mktemp("home")
    run_there(written.files[-1], home=home)
    run_real(MASK, folder / "out", home=home)
    return folder / "out"


def test_real_cleanlab_finds_the_wrong_label_and_the_twins(exported, tmp_path):
    written = read_issues(exported / "issues.parquet", tmp_path / "manifest.parquet")
    samples = list(open_source(str(written.files[0])).read())
    assert len(samples) == N
    assert [row for row, sample in enumerate(samples) if sample.metadata["is_label_issue"]] == [
        20 + WRONG
    ]
    twins = [
        row for row, sample in enumerate(samples) if sample.metadata["is_near_duplicate_issue"]
    ]
    assert set(twins) >= {20 + place for place in MATCHED_CONTROL}
    assert samples[20 + WRONG].metadata["label_score"] < 0.2
    assert samples[0].metadata["is_label_issue"] is None
    assert samples[0].split == "train"
    assert (samples[20].labels, samples[20].predictions) == (("disc",), ("disc",))
    assert "is_outlier_issue" in samples[20].metadata


@pytest.mark.parametrize("name", ["mask.npy", "ranked.npy"])
def test_arrays_of_find_label_issues_are_read_by_position(exported, tmp_path, name):
    written = read_issues(exported / name, tmp_path / "manifest.parquet")
    assert written.sentence.startswith(f"1 of {N} samples")
    found = pq.read_table(written.files[0]).column("is_label_issue").to_pylist()
    assert [row for row, is_issue in enumerate(found) if is_issue] == [20 + WRONG]


def test_issues_without_ids_are_taken_in_the_order_of_the_arrays(exported, tmp_path):
    issues = pq.read_table(exported / "issues.parquet").drop_columns(["sample_id"])
    pq.write_table(issues, exported / "no-ids.parquet")
    pq.write_table(issues.slice(1), exported / "short.parquet")
    found = pq.read_table(read_issues(exported / "no-ids.parquet", tmp_path / "m.parquet").files[0])
    assert found.column("is_label_issue").to_pylist()[20 + WRONG] is True
    with pytest.raises(DataError, match="of other samples"):
        read_issues(exported / "short.parquet", tmp_path / "m.parquet")


def test_only_labelled_samples_outside_training_are_handed_over(tmp_path):
    written = write_issues(made_bundle(tmp_path / "images"), tmp_path / "out")
    table = pq.read_table(written.files[0])
    assert np.load(tmp_path / "out" / "labels.npy").tolist() == [1, 0, 1, 0]
    assert table.column("cleanlab_row").to_pylist() == [None, None, 0, 1, 2, 3, None, None]
    assert np.load(tmp_path / "out" / "features.npy").shape == (4, 5)
    assert [
        row for row, is_suspect in enumerate(table.column(SUSPECT).to_pylist()) if is_suspect
    ] == [3]
    assert TAG in table.column_names


def test_what_does_not_fit_is_refused(exported, tmp_path):
    with pytest.raises(ConfigError, match="extension"):
        read_issues(exported / "issues.parquet", tmp_path / "m.xlsx")
    pq.write_table(pa.table({"is_label_issue": [True]}), tmp_path / "alone.parquet")
    with pytest.raises(DataError, match="nobody knows whose"):
        read_issues(tmp_path / "alone.parquet", tmp_path / "m.csv")
    pq.write_table(
        pa.table({"sample_id": ["stranger"], "is_label_issue": [True]}),
        exported / "stranger.parquet",
    )
    with pytest.raises(DataError, match="not exported"):
        read_issues(exported / "stranger.parquet", tmp_path / "m.csv")
    pq.write_table(
        pa.table({"sample_id": pa.array([], pa.string()), "colour": []}), exported / "other.parquet"
    )
    with pytest.raises(DataError, match="no column of cleanlab"):
        read_issues(exported / "other.parquet", tmp_path / "m.csv")
    np.save(exported / "numbers.npy", np.array([0.5]))
    with pytest.raises(DataError, match="neither a mask"):
        read_issues(exported / "numbers.npy", tmp_path / "m.csv")
    (exported / "broken.npy").write_bytes(json.dumps([1]).encode())
    with pytest.raises(DataError, match="no array"):
        read_issues(exported / "broken.npy", tmp_path / "m.csv")


def test_several_labels_and_no_predictions_are_refused(tmp_path):
    many = dataset_from_columns(class_names=["a"], label_lists=[[0]])
    with pytest.raises(DataError, match="several labels"):
        write_issues(
            made_bundle(tmp_path, samples=SampleSet(dataset=many, rows=np.arange(1))),
            tmp_path / "out",
        )
    bare = dataset_from_columns(class_names=["a"], labels=[0])
    with pytest.raises(DataError, match="neither probabilities nor embeddings"):
        write_issues(
            made_bundle(tmp_path, samples=SampleSet(dataset=bare, rows=np.arange(1))),
            tmp_path / "out",
        )
