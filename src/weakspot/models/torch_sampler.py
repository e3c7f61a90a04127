"""What a repair trains on, for a training loop of one's own in torch; needs no project.

from torch.utils.data import DataLoader
from weakspot.models.torch_sampler import WeightedSamples, loss_weights

sampler = WeightedSamples("training_weights.csv", ids=my_image_paths, seed=1)
for epoch in range(20):
    sampler.set_epoch(epoch)
    for batch in DataLoader(my_data_set, batch_size=64, sampler=sampler):
        ...
"""

import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from weakspot.core.arrays import AnyArray, IntArray, generator
from weakspot.core.errors import ConfigError, raise_all
from weakspot.models.torch.runtime import require_torch
from weakspot.models.training_weights import checked_weights, read_training_weights

_TORCH: Any = require_torch("Samplers")


class WeightedSamples(_TORCH.utils.data.Sampler):  # type: ignore[misc] # torch is not typed here
    """Draws positions of a data set with replacement, in proportion to weights; another order every epoch, the same for a seed.

    With several processes every one draws the same and keeps its own share, so that together they see what one would.

    Args:
        weights: `training_weights.csv`, or one weight a sample of the data set.
        ids: with a file, sample id or image of every sample of the data set, in its order; without, the data set is taken to be
            the rows of the file, in their order.
        n_draws: draws an epoch over all processes; by default one a sample that has a weight.
        seed: of the draws.
        rank: number of this process.
        world_size: how many processes there are.
    """

    def __init__(
        self,
        weights: str | Path | Sequence[float] | AnyArray,
        *,
        ids: Sequence[str] | None = None,
        n_draws: int | None = None,
        seed: int = 0,
        rank: int = 0,
        world_size: int = 1,
    ) -> None:
        super().__init__()
        numbers = _weights(weights, ids)
        self._cumulated = numbers.cumsum()
        self._n_draws = int((numbers > 0).sum()) if n_draws is None else n_draws
        self._seed, self._rank, self._world_size = seed, rank, world_size
        self._epoch = 0
        problems = [
            f"{name}: {value!r} is not {wanted}"
            for name, value, wanted, is_fine in (
                ("n_draws", self._n_draws, "at least 1", self._n_draws >= 1),
                ("world_size", world_size, "at least 1", world_size >= 1),
                ("rank", rank, f"from 0 to {world_size - 1}", 0 <= rank < world_size),
            )
            if not is_fine
        ]
        raise_all(
            problems,
            error=ConfigError,
            what="The sampler cannot be used like this:",
            where="WeightedSamples",
        )

    def __len__(self) -> int:
        """Return how many positions this process draws an epoch; all processes draw as many."""
        return math.ceil(self._n_draws / self._world_size)

    def __iter__(self) -> Iterator[int]:
        """Yield the positions of this process in the epoch that is set."""
        return iter(self._draws()[self._rank :: self._world_size].tolist())

    def set_epoch(self, epoch: int) -> None:
        """Say which epoch begins; without it every one is like the first."""
        self._epoch = epoch

    def _draws(self) -> IntArray:
        chance = generator(self._seed, "training samples", str(self._epoch))
        total = self._cumulated[-1]
        # A product can be rounded up to the total, beyond which there is nothing.
        points = np.minimum(
            chance.random(len(self) * self._world_size) * total, np.nextafter(total, 0.0)
        )
        positions: IntArray = self._cumulated.searchsorted(points, side="right")
        return positions


def loss_weights(path: str | Path, ids: Sequence[str]) -> Any:
    """Return a tensor with the weight of every sample named, to multiply losses with; 0 for what the repair does not train on.

    Args:
        path: `training_weights.csv`.
        ids: sample ids or images, in any order.
    """
    return _TORCH.from_numpy(read_training_weights(path).of(ids)).float()


def _weights(given: str | Path | Sequence[float] | AnyArray, ids: Sequence[str] | None) -> AnyArray:
    if isinstance(given, str | Path):
        table = read_training_weights(given)
        return checked_weights(
            table.weights if ids is None else table.in_order_of(ids), where=str(given)
        )
    if ids is not None:
        raise ConfigError(
            "ids are only for a file: weights in memory are in the order of the data set.",
            where="ids",
        )
    return checked_weights(given, where="weights")
