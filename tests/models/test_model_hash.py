import numpy as np

from weakspot.models.loading import arrays_hash, file_hash, model_id


def test_file_hash__content_not_name(tmp_path):
    (tmp_path / "a").write_bytes(b"same")
    (tmp_path / "b").write_bytes(b"same")
    (tmp_path / "c").write_bytes(b"other")
    assert file_hash(tmp_path / "a") == file_hash(tmp_path / "b") != file_hash(tmp_path / "c")
    assert file_hash(tmp_path / "a") == "0967115f2813a354"


def test_file_hash__folder_sees_names(tmp_path):
    for name, inner in (("one", "x"), ("two", "y")):
        (tmp_path / name).mkdir()
        (tmp_path / name / inner).write_bytes(b"same")
    assert file_hash(tmp_path / "one") != file_hash(tmp_path / "two")


def test_arrays_hash__order_shape_and_numbers():
    one, two = np.zeros((2, 3)), np.ones(4)
    assert arrays_hash({"a": one, "b": two}) == arrays_hash({"b": two, "a": one})
    assert arrays_hash({"a": one}) != arrays_hash({"a": one.reshape(3, 2)})
    assert arrays_hash({"a": one}) != arrays_hash({"a": one.astype(np.float32)})


def test_model_id__says_kind_and_name():
    name, _, digest = model_id("onnx", "m.onnx", "abc", {"side": 3}).partition("@")
    assert name == "onnx:m.onnx"
    assert len(digest) == 16
