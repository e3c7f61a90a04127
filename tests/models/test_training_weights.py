import numpy as np
import pytest

from weakspot.core.errors import DataError
from weakspot.models.training_weights import checked_weights, read_training_weights

TABLE = """sample_id,image,label,weight,source
aa,images/1.png,cat,0.5,train
bb,"images/2, left.png",dog,2.0,train
cc,images/3.png,cat;dog,0.5,pool
"""


def _table(folder, text=TABLE):
    path = folder / "training_weights.csv"
    path.write_text(text)
    return path


def test_read_training_weights__columns(tmp_path):
    table = read_training_weights(_table(tmp_path))
    assert table.sample_ids == ("aa", "bb", "cc")
    assert table.images[1] == "images/2, left.png"
    assert table.labels == ("cat", "dog", "cat;dog")
    assert table.weights.tolist() == [0.5, 2.0, 0.5]
    assert table.sources == ("train", "train", "pool")


def test_of__ids_and_images_in_any_order(tmp_path):
    table = read_training_weights(_table(tmp_path))
    assert table.of(["bb", "unknown", "images/3.png", "aa"]).tolist() == [2.0, 0.0, 0.5, 0.5]


def test_of__image_with_two_weights(tmp_path):
    text = TABLE + "dd,images/1.png,dog,1.5,train\nee,images/3.png,dog,0.5,train\n"
    table = read_training_weights(_table(tmp_path, text))
    assert table.of(["aa", "dd", "images/3.png"]).tolist() == [0.5, 1.5, 0.5]
    with pytest.raises(DataError, match="listed more than once"):
        table.of(["images/1.png"])


def test_in_order_of__everything_must_be_there(tmp_path):
    table = read_training_weights(_table(tmp_path))
    assert table.in_order_of(["x", "cc", "images/1.png", "bb"]).tolist() == [0.0, 0.5, 0.5, 2.0]
    with pytest.raises(DataError, match=r"1 of 3 samples .* images/3\.png \(pool\)"):
        table.in_order_of(["aa", "bb"])


def test_read_training_weights__problems(tmp_path):
    with pytest.raises(DataError, match="no such file"):
        read_training_weights(tmp_path / "none.csv")
    for text, message in (
        ("", "missing: sample_id, image, label, weight, source"),
        (TABLE.replace("weight", "wait"), "missing: weight"),
        (TABLE.splitlines()[0] + "\n", "no rows"),
        (TABLE.replace("2.0", "much"), "line 3.*'much'"),
        (TABLE.replace("2.0", "-1"), "position 1"),
        (TABLE.replace("2.0", "nan"), "position 1"),
    ):
        with pytest.raises(DataError, match=message):
            read_training_weights(_table(tmp_path, text))
    (tmp_path / "training_weights.csv").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(DataError, match="no table of text"):
        read_training_weights(tmp_path / "training_weights.csv")


def test_checked_weights__problems():
    assert checked_weights([1, 0], where="w").tolist() == [1.0, 0.0]
    for weights, message in (
        ([], "one number a sample"),
        (np.ones((2, 2)), "one number a sample"),
        ([0.0, 0.0], "All weights are zero"),
    ):
        with pytest.raises(DataError, match=message):
            checked_weights(weights, where="w")
