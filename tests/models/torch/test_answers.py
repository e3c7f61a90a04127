"""A torch module asked in memory."""

import numpy as np
import pytest
import torch

from weakspot.core.errors import DataError, ModelError
from weakspot.models.torch.network import ask_module


class Noisy(torch.nn.Module):
    """Answers at random while it trains."""

    def __init__(self, n_scores):
        super().__init__()
        self.drop = torch.nn.Dropout(0.5)
        self.layer = torch.nn.Linear(12, n_scores) if n_scores else torch.nn.Identity()

    def forward(self, images):
        return self.layer(self.drop(images.flatten(1))) if len(images.shape) > 2 else images


def data_set(n_samples=70):
    torch.manual_seed(3)
    return torch.utils.data.TensorDataset(
        torch.rand(n_samples, 3, 2, 2), torch.arange(n_samples) % 2
    )


def test_ask_module__in_evaluation_mode_and_in_order():
    module, data = Noisy(2).train(), data_set()
    told = ask_module(module, data)
    module.eval()
    expected = torch.softmax(module(data.tensors[0]), dim=1).detach().numpy()
    assert np.allclose(told["probabilities"], expected, atol=1e-6)
    assert told["labels"] == data.tensors[1].tolist()
    assert np.allclose(np.stack(told["images"]), data.tensors[0].numpy())


def test_ask_module__training_mode_comes_back_after_an_error():
    module = torch.nn.Flatten().train()
    with pytest.raises(ModelError, match="no scores"):
        ask_module(torch.nn.Sequential(module, torch.nn.Unflatten(1, (3, 4))), data_set())
    assert module.training


def test_ask_module__loader__is_taken_as_it_is():
    data = data_set(10)
    loader = torch.utils.data.DataLoader(data, batch_size=3)
    assert ask_module(Noisy(2), loader)["labels"] == data.tensors[1].tolist()


def test_ask_module__no_pairs__says_so():
    with pytest.raises(DataError, match="no pairs"):
        ask_module(Noisy(2), [torch.rand(3, 2, 2) for _ in range(4)])


def test_ask_module__images_that_it_cannot_take__says_so():
    with pytest.raises(ModelError, match=r"cannot take a batch.*\(32, 3, 2, 2\)"):
        ask_module(torch.nn.Linear(7, 2), data_set())


@pytest.mark.parametrize("how", ["subset", "weights", "batches"])
def test_ask_module__loader_in_another_order__refused(how):
    data = data_set(6)
    draw = torch.utils.data
    loader = {
        "subset": draw.DataLoader(data, sampler=draw.SubsetRandomSampler(range(6))),
        "weights": draw.DataLoader(data, sampler=draw.WeightedRandomSampler([1.0] * 6, 6)),
        "batches": draw.DataLoader(data, batch_sampler=[[3, 1], [0]]),
    }[how]
    with pytest.raises(DataError, match="shuffles"):
        ask_module(Noisy(2), loader)


def test_ask_module__a_subset__does_not_take_the_files_of_the_whole():
    data = data_set(4)
    data.samples = [(f"{place}.png", 0) for place in range(4)]
    subset = torch.utils.data.Subset(data, [3, 2, 1, 0])
    assert np.allclose(ask_module(Noisy(2), subset)["images"][0], data.tensors[0][3].numpy())
