"""A torch module asked in memory."""

import numpy as np
import pytest
import torch

from weakspot.backends.torch_answers import ask_module
from weakspot.core.errors import DataError, ModelError


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
