import numpy as np
from tests.neighbours.made_bundle import TAG, made_bundle

from weakspot.core.dataset import dataset_from_columns
from weakspot.core.samples import SampleSet, VectorSpace
from weakspot.neighbours.sample_table import embedding_column, sample_table


def test_columns_stand_in_a_fixed_order_and_own_ones_come_last(tmp_path):
    table = sample_table(made_bundle(tmp_path / "pictures"), tmp_path)
    outcomes = ["sample_id", "image", "split", "label", "prediction", "confidence", "failed", TAG]
    assert table.column_names == [*outcomes, "colour", "size", "box share", "tags"]
    assert table.column(TAG).to_pylist() == [False, True, False, True, False, True, False, False]


def test_an_own_column_never_hides_one_of_ours(tmp_path):
    dataset = dataset_from_columns(class_names=["a"], labels=[0], metadata={"label": ["mine"], "embedding": ["mine"]})
    nobody = np.zeros(1, dtype=np.bool_)
    samples = SampleSet(dataset=dataset, rows=np.arange(1))
    table = sample_table(made_bundle(tmp_path, samples=samples, slices=(), has_failed=nobody, is_judged=nobody), tmp_path)
    assert table.column("label").to_pylist() == ["a"]
    assert table.column("meta.label").to_pylist() == ["mine"]
    assert "meta.embedding" in table.column_names
    assert "failed" not in table.column_names


def test_a_sample_without_a_vector_has_none(tmp_path):
    bundle = made_bundle(tmp_path)
    vectors = np.array(bundle.vectors())
    vectors[2] = np.nan
    spaces = {"joint": VectorSpace(encoder_id="made", vectors=vectors)}
    samples = SampleSet(dataset=bundle.samples.dataset, rows=bundle.samples.rows, spaces=spaces)
    column = embedding_column(made_bundle(tmp_path, samples=samples)).to_pylist()
    assert column[2] is None
    assert column[3] == vectors[3].tolist()
