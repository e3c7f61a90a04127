"""Small convolutional networks for small images, trained from scratch in seconds: for studies that retrain a whole network."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Annotated, Any, Literal, get_args

import numpy as np

from weakspot.backends.torch.device import require_torch
from weakspot.core.arrays import AnyArray, ByteArray, FloatArray, IntArray
from weakspot.core.bounds import Bounds, Count, NonNegativeInt, Positive, check_bounds

NetworkShape = Literal[
    "plain", "average", "residual", "wide", "separable", "patches", "dense", "coarse"
]
SHAPES: tuple[NetworkShape, ...] = get_args(NetworkShape)
PURPOSE = "small networks"
LARGEST_PASS = 1024
GRADIENT_NORM = 2.0


@dataclass(frozen=True, kw_only=True)
class NetworkPlan:
    """What network is trained, and how.

    Args:
        shape: `plain` three strided convolutions and the largest activation of each channel; `average` the same with means;
            `residual` blocks with a shortcut; `wide` kernels of 5 x 5; `separable` convolutions of one channel each; `patches`
            blocks on patches of 4 x 4; `dense` two layers without convolution; `coarse` convolutions on halved images.
        width: channels of the first layer; there are four times as many features.
        seed: of the first weights and of the order of samples.
        epochs: passes over the training samples.
        learning_rate: the largest; it rises and falls once.
        batch: samples of a step.
    """

    shape: NetworkShape = "plain"
    width: Annotated[int, Bounds(ge=2)] = 16
    seed: NonNegativeInt = 0
    epochs: Count = 10
    learning_rate: Positive = 0.01
    batch: Annotated[int, Bounds(ge=2)] = 64

    def __post_init__(self) -> None:
        known = [] if self.shape in SHAPES else [f"shape must be one of {list(SHAPES)}"]
        check_bounds(self, where="network", problems=known)

    @property
    def name(self) -> str:
        return f"{self.shape}-{self.width}-{self.seed}"

    def again(self, seed: int) -> "NetworkPlan":
        """Return the same network from other first weights."""
        return replace(self, seed=seed)


@dataclass(frozen=True, kw_only=True, eq=False)
class SmallNetwork:
    """A trained network.

    Args:
        plan: what was trained.
        module: features, then the last layer.
    """

    plan: NetworkPlan
    module: Any

    def features(self, images: ByteArray) -> FloatArray:
        """Return what the last layer sees [n, d] of images [n, h, w, 3]."""
        return self._passed(images, self.module[0])

    def logits(self, images: ByteArray) -> FloatArray:
        """Return scores [n, c] of images [n, h, w, 3]."""
        return self._passed(images, self.module)

    def probabilities(self, images: ByteArray) -> FloatArray:
        """Return probabilities [n, c] of images [n, h, w, 3]."""
        scores = self.logits(images).astype(np.float64)
        raised = np.exp(scores - scores.max(axis=1, keepdims=True))
        return np.asarray(raised / raised.sum(axis=1, keepdims=True), dtype=np.float32)

    @property
    def last_layer(self) -> tuple[FloatArray, FloatArray]:
        """Return weights [c, d] and bias [c]."""
        layer = self.module[1]
        return layer.weight.detach().numpy().copy(), layer.bias.detach().numpy().copy()

    def _passed(self, images: ByteArray, module: Any) -> FloatArray:
        import torch

        found = []
        with torch.inference_mode(), _one_thread():
            for first in range(0, max(len(images), 1), LARGEST_PASS):
                found.append(module(_tensor(images[first : first + LARGEST_PASS])).numpy())
        return np.concatenate(found)


def train_small_network(
    plan: NetworkPlan,
    images: ByteArray,
    labels: IntArray,
    *,
    n_classes: int,
    start: SmallNetwork | None = None,
) -> SmallNetwork:
    """Train a network; on one machine the same arguments give the same network.

    Args:
        plan: which one.
        images: [n, h, w, 3].
        labels: class codes [n].
        n_classes: outputs of the last layer.
        start: go on from this network instead of from first weights.

    Raises:
        MissingExtraError: if torch is not installed.
    """
    torch = require_torch(PURPOSE)
    with torch.random.fork_rng(devices=[]), _one_thread():
        torch.manual_seed(plan.seed)
        if start is None:
            body = _body(plan, side=int(images.shape[1]))
            module = torch.nn.Sequential(body, torch.nn.Linear(4 * plan.width, n_classes))
        else:
            import copy

            module = copy.deepcopy(start.module)
        _fit(module, plan, _tensor(images), torch.from_numpy(np.asarray(labels, dtype=np.int64)))
    module.eval()
    return SmallNetwork(plan=plan, module=module)


def _fit(module: Any, plan: NetworkPlan, images: Any, labels: Any) -> None:
    import torch

    n_steps = max(1, len(images) // plan.batch)
    optimiser = torch.optim.AdamW(module.parameters(), lr=plan.learning_rate, weight_decay=1e-3)
    schedule = torch.optim.lr_scheduler.OneCycleLR(
        optimiser, plan.learning_rate, total_steps=plan.epochs * n_steps + 1
    )
    module.train()
    for _ in range(plan.epochs):
        order = torch.randperm(len(images))
        for step in range(n_steps):
            chosen = order[step * plan.batch : (step + 1) * plan.batch]
            optimiser.zero_grad()
            loss = torch.nn.functional.cross_entropy(module(images[chosen]), labels[chosen])
            loss.backward()
            torch.nn.utils.clip_grad_norm_(module.parameters(), GRADIENT_NORM)
            optimiser.step()
            schedule.step()


@contextmanager
def _one_thread() -> Iterator[None]:
    """Compute in one thread: sums come in the same order on every machine, and small layers gain nothing by more."""
    import torch

    n_before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(n_before)


def _tensor(images: AnyArray) -> Any:
    import torch

    scaled = np.ascontiguousarray(images.transpose(0, 3, 1, 2), dtype=np.float32) / 127.5 - 1.0
    return torch.from_numpy(scaled)


def _body(plan: NetworkPlan, *, side: int) -> Any:
    from torch import nn

    width = plan.width
    if plan.shape == "dense":
        first = nn.Linear(3 * side * side, 8 * width)
        return nn.Sequential(
            nn.Flatten(), first, nn.ReLU(), nn.Linear(8 * width, 4 * width), nn.ReLU()
        )
    if plan.shape == "patches":
        layers = [nn.Conv2d(3, 4 * width, 4, stride=4), nn.ReLU()]
        layers += [_residual(_separable(4 * width, 4 * width, kernel=5)) for _ in range(2)]
        return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten())
    kernel = 5 if plan.shape == "wide" else 3
    steps = [(3, width), (width, 2 * width), (2 * width, 4 * width)]
    layers = [nn.AvgPool2d(2)] if plan.shape == "coarse" else []
    for place, (inputs, outputs) in enumerate(steps):
        is_separable = plan.shape == "separable" and place > 0
        make = _separable if is_separable else _convolution
        layers.append(make(inputs, outputs, kernel=kernel, stride=2))
        if plan.shape == "residual" and place < len(steps) - 1:
            layers.append(_residual(_convolution(outputs, outputs, kernel=3)))
    means = plan.shape in {"average", "residual"}
    pool = nn.AdaptiveAvgPool2d(1) if means else nn.AdaptiveMaxPool2d(1)
    return nn.Sequential(*layers, pool, nn.Flatten())


def _convolution(inputs: int, outputs: int, *, kernel: int, stride: int = 1) -> Any:
    from torch import nn

    layer = nn.Conv2d(inputs, outputs, kernel, stride=stride, padding=kernel // 2, bias=False)
    return nn.Sequential(layer, nn.BatchNorm2d(outputs), nn.ReLU())


def _separable(inputs: int, outputs: int, *, kernel: int, stride: int = 1) -> Any:
    from torch import nn

    each = nn.Conv2d(inputs, inputs, kernel, stride=stride, padding=kernel // 2, groups=inputs)
    mixed = nn.Conv2d(inputs, outputs, 1, bias=False)
    return nn.Sequential(each, nn.ReLU(), mixed, nn.BatchNorm2d(outputs), nn.ReLU())


def _residual(inner: Any) -> Any:
    """Return a module that adds its input to what another one makes of it."""
    from torch import nn

    class Residual(nn.Module):  # type: ignore[misc] # torch has no types here
        def __init__(self) -> None:
            super().__init__()
            self.inner = inner

        def forward(self, given: Any) -> Any:
            return given + self.inner(given)

    return Residual()
