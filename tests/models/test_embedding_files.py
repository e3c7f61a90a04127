import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from weakspot.core.errors import DataError
from weakspot.models.given_embeddings import read_embedding_file

EMBEDDINGS = np.array([[1.0, 2.0], [3.0, 4.0]], dtype=np.float32)


def test_read_embedding_file__columns_by_name(tmp_path):
    columns = {"id": ["x", "y"], "mine": [7, 8], "a": [[1.0], [2.0]], "b": [[1.0, 2.0], [3.0, 4.0]]}
    pq.write_table(pa.table(columns), tmp_path / "v.parquet")
    columns = {"embedding_column": "b", "id_column": "mine"}
    embeddings, names = read_embedding_file(tmp_path / "v.parquet", **columns)
    assert embeddings.tolist() == EMBEDDINGS.tolist()
    assert names == ("7", "8")


def test_read_embedding_file__arrays_by_name(tmp_path):
    np.savez(tmp_path / "v.npz", features=EMBEDDINGS, who=np.array(["x", "y"]))
    columns = {"embedding_column": "features", "id_column": "who"}
    embeddings, names = read_embedding_file(tmp_path / "v.npz", **columns)
    assert embeddings.tolist() == EMBEDDINGS.tolist()
    assert names == ("x", "y")


def write_parquet(path, **columns):
    pq.write_table(pa.table(columns), path)


@pytest.mark.parametrize(
    ("name", "write", "message"),
    [
        ("v.csv", lambda path: path.write_text("1,2"), "from .npy, .npz or .parquet"),
        ("v.npy", lambda path: path.write_bytes(b"nothing"), "cannot be read"),
        ("v.npz", lambda path: path.write_bytes(b"nothing"), "cannot be read"),
        ("v.parquet", lambda path: path.write_bytes(b"nothing"), "cannot be read"),
        ("v.npy", lambda path: np.save(path, np.array([{"a": 1}], dtype=object)), "cannot be read"),
        ("v.npy", lambda path: np.save(path, np.ones(3)), r"shape \[n, d\]"),
        ("v.npy", lambda path: np.save(path, np.ones((3, 2), dtype=np.int64)), "floating-point"),
        ("v.npz", lambda path: np.savez(path, other=EMBEDDINGS), "no array of embeddings"),
        (
            "v.npz",
            lambda path: np.savez(path, embeddings=EMBEDDINGS, ids=np.array(["x"])),
            "1 names for 2 embeddings",
        ),
        (
            "v.npz",
            lambda path: np.savez(path, embeddings=EMBEDDINGS, ids=np.array(["x", "x"])),
            "more than one embedding",
        ),
        (
            "v.parquet",
            lambda path: write_parquet(path, id=["x"], a=[[1.0]], b=[[1.0]]),
            "not clear which column",
        ),
        (
            "v.parquet",
            lambda path: write_parquet(path, who=["x"], a=[[1.0]]),
            "no column that names",
        ),
        (
            "v.parquet",
            lambda path: write_parquet(path, id=["x", "y"], a=[[1.0], [1.0, 2.0]]),
            "differ in length",
        ),
    ],
)
def test_read_embedding_file__what_cannot_be_used(tmp_path, name, write, message):
    write(tmp_path / name)
    with pytest.raises(DataError, match=message):
        read_embedding_file(tmp_path / name)


def test_read_embedding_file__missing(tmp_path):
    with pytest.raises(DataError, match="cannot be read"):
        read_embedding_file(tmp_path / "v.npy")
