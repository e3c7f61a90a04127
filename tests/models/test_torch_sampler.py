from collections import Counter

import numpy as np
import pytest
import torch
from torch.utils.data import DataLoader, Sampler, TensorDataset

from weakspot.core.errors import ConfigError, DataError
from weakspot.models.torch_sampler import WeightedSamples, loss_weights

TABLE = """sample_id,image,label,weight,source
aa,1.png,cat,0.5,train
bb,2.png,dog,2.0,train
cc,3.png,cat,0.5,pool
"""


@pytest.fixture
def table(tmp_path):
    path = tmp_path / "training_weights.csv"
    path.write_text(TABLE)
    return path


def test_iter__shares_follow_weights():
    sampler = WeightedSamples([0.0, 1.0, 3.0, 0.0], n_draws=20_000, seed=1)
    counts = Counter(sampler)
    assert isinstance(sampler, Sampler)
    assert sorted(counts) == [1, 2]
    assert counts[2] / 20_000 == pytest.approx(0.75, abs=0.02)


def test_set_epoch__other_draws_and_the_same_again():
    sampler = WeightedSamples(np.ones(50))
    first = list(sampler)
    assert list(sampler) == first
    sampler.set_epoch(1)
    assert list(sampler) != first
    sampler.set_epoch(0)
    assert list(sampler) == first
    assert list(WeightedSamples(np.ones(50), seed=1)) != first


def test_iter__processes_share_what_one_would_draw():
    weights, whole = np.arange(10.0), None
    parts = [
        WeightedSamples(weights, n_draws=10, rank=rank, world_size=4, seed=3) for rank in range(4)
    ]
    assert [len(part) for part in parts] == [3, 3, 3, 3]
    assert [len(list(part)) for part in parts] == [3, 3, 3, 3]
    whole = list(WeightedSamples(weights, n_draws=12, seed=3))
    together = [number for row in zip(*parts, strict=True) for number in row]
    assert together == whole


def test_len__draws_as_many_as_have_a_weight(table):
    assert len(WeightedSamples([0.0, 1.0, 2.0])) == 2
    assert len(WeightedSamples(table)) == 3
    assert len(WeightedSamples(table, ids=["x", "cc", "1.png", "y", "bb"], n_draws=7)) == 7


def test_iter__file_in_the_order_of_the_data_set(table):
    sampler = WeightedSamples(table, ids=["x", "cc", "1.png", "y", "bb"], n_draws=600)
    counts = Counter(sampler)
    assert sorted(counts) == [1, 2, 4]
    assert counts[4] / 600 == pytest.approx(2 / 3, abs=0.06)


def test_iter__inside_a_data_loader(table):
    loader = DataLoader(
        TensorDataset(torch.arange(3)), batch_size=2, sampler=WeightedSamples(table, seed=5)
    )
    drawn = torch.cat([batch for (batch,) in loader]).tolist()
    assert drawn == list(WeightedSamples(table, seed=5))


def test_loss_weights__tensor(table):
    weights = loss_weights(table, ["2.png", "unknown", "aa"])
    assert weights.dtype is torch.float32
    assert weights.tolist() == [2.0, 0.0, 0.5]


def test_init__problems(table):
    with pytest.raises(ConfigError, match=r"rank: 2 is not from 0 to 1"):
        WeightedSamples([1.0], rank=2, world_size=2)
    with pytest.raises(ConfigError, match=r"(?s)n_draws: 0.*world_size: 0"):
        WeightedSamples([1.0], n_draws=0, world_size=0)
    with pytest.raises(ConfigError, match="ids are only for a file"):
        WeightedSamples([1.0], ids=["a"])
    with pytest.raises(DataError, match="All weights are zero"):
        WeightedSamples([0.0])
    with pytest.raises(DataError, match="not in this data set"):
        WeightedSamples(table, ids=["aa", "bb"])
