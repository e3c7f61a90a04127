import os
import pickle

import numpy as np
import pytest
import torch

from weakspot.core.errors import ModelError
from weakspot.models.embedded.witnesses import read_arrays_of_torch


def _saved(content, path):
    torch.save(content, path, _use_new_zipfile_serialization=False)
    return path


def test_read_arrays_of_torch__equals_what_torch_reads(tmp_path):
    weights = torch.arange(24, dtype=torch.float32).reshape(2, 3, 4)
    table = {
        "whole": weights,
        "turned": weights.transpose(0, 2),
        "part": weights[1, 1:],
        "count": torch.tensor(7),
        "half": weights.half(),
    }

    found = read_arrays_of_torch(_saved(table, tmp_path / "weights.pth"))

    assert set(found) == set(table)
    for name, value in table.items():
        assert np.array_equal(found[name], value.numpy())
        assert found[name].dtype == value.numpy().dtype


def test_read_arrays_of_torch__table_in_a_checkpoint(tmp_path):
    path = _saved({"epoch": 3, "state_dict": {"bias": torch.ones(2)}}, tmp_path / "checkpoint.tar")

    assert read_arrays_of_torch(path)["bias"].tolist() == [1.0, 1.0]


class Intruder:
    def __reduce__(self):
        return os.mkdir, ("intruded",)


def test_read_arrays_of_torch__runs_nothing(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "weights.pth"
    _saved({"bias": torch.ones(2)}, path)
    content = path.read_bytes()
    path.write_bytes(pickle.dumps(Intruder(), protocol=2) + content)

    with pytest.raises(ModelError, match="names .*mkdir"):
        read_arrays_of_torch(path)
    assert not (tmp_path / "intruded").exists()


@pytest.mark.parametrize("n_bytes", [0, 30, -4])
def test_read_arrays_of_torch__cut_short(tmp_path, n_bytes):
    path = _saved({"bias": torch.ones(1000)}, tmp_path / "weights.pth")
    path.write_bytes(path.read_bytes()[:n_bytes])

    with pytest.raises(ModelError, match="no table of weights"):
        read_arrays_of_torch(path)


def test_read_arrays_of_torch__another_file(tmp_path):
    path = tmp_path / "weights.pth"
    path.write_bytes(pickle.dumps({"bias": 1}))

    with pytest.raises(ModelError, match=r"before version 1\.6"):
        read_arrays_of_torch(path)
